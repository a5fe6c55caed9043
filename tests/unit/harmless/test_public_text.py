"""Names of machines and people in texts as they come: gone where they are meant, left where the same letters stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.harmless.identities import Identities
from sparkdiag.harmless.public_text import PublicText

KNOWN = Identities(
    hosts=frozenset({"gpubox", "vm", "gpubox.hpc.uni-hof.de", "f3a9c0d1e2b4"}),
    users=frozenset({"alice", "max", "root"}),
)

HOMES = [
    (
        "/home/carol/env/lib/python3.11/site-packages/vllm/v1/core.py",
        "~/env/lib/python3.11/site-packages/vllm/v1/core.py",
    ),
    ("/Users/carol/x.py:48", "~/x.py:48"),
    ("/root/.pyenv/bin/python", "~/.pyenv/bin/python"),
    ("see /root.", "see ~."),
    ("HOME=/root", "HOME=~"),
    ("file:///home/carol/x", "file://~/x"),
    ("file:///root/x", "file://~/x"),
    (r"C:\Users\Carol\vllm\x.py", r"~\vllm\x.py"),
    (r"C:\Users\Carol Danvers\vllm\x.py", r"~\vllm\x.py"),
    ("C:/Users/Carol/vllm", "~/vllm"),
    (r"'C:\\Users\\Carol\\x'", r"'~\\x'"),
    ("path=%2Fhome%2Fcarol%2Fx", "path=~%2Fx"),
    ("/data/home/carol/runs/1", "/data/home/[user]/runs/1"),
    ("/mnt/fast/users/carol/runs", "/mnt/fast/users/[user]/runs"),
    ("cd ~carol/x", "cd ~/x"),
    ("/tmp/torchinductor_carol/fx", "/tmp/torchinductor_[user]/fx"),
    ("/tmp/pytest-of-carol/pytest-0", "/tmp/pytest-of-[user]/pytest-0"),
    ("USER=carol LOGNAME=carol", "USER=[user] LOGNAME=[user]"),
    ("uid=1000(carol) gid=1000(carol)", "uid=1000([user]) gid=1000([user])"),
    ("('/home/carol/a', \"/home/carol/b\")", "('~/a', \"~/b\")"),
    ("/home/carol", "~"),
]
USERS = [
    ("started by alice", "started by [user]"),
    ("/scratch/alice/runs", "/scratch/[user]/runs"),
    ("alice_venv and Alice", "[user]_venv and [user]"),
    ("max@cluster said max 8", "[user]@cluster said max 8"),
    ("carol@gpu7.example-hpc.de", "[user]@[host-1]"),
    ("Signed-off-by: Carol D <carol.d@corp.example.com>", "Signed-off-by: [user] <[user]@corp.example.com>"),
    ("carol@gpu7:~$ nvidia-smi", "[user]@[host-1]:~$ nvidia-smi"),
    ("git@github.com:vllm-project/vllm.git", "git@github.com:vllm-project/vllm.git"),
]
HOSTS = [
    ("http://gpu7:8000/v1/models", "http://[host-1]:8000/v1/models"),
    ("http://u:p@gpu7.corp:8000/", "http://[redacted]@[host-1]:8000/"),
    ("tcp://gpu-node-3:29500 and gpu-node-3 again", "tcp://[host-1]:29500 and [host-1] again"),
    ("connected to gpu-node-3:29500", "connected to [host-1]:29500"),
    ("http%3A%2F%2Fgpu7%3A8000%2Fv1", "http%3A%2F%2F[host-1]%3A8000%2Fv1"),
    ("s3://carols-bucket/model", "s3://[host-1]/model"),
    ("resolve db.prod.internal failed", "resolve [host-1] failed"),
    ("vllm.ml.svc.cluster.local:80", "[host-1]:80"),
    ("ec2-3-4-5-6.eu-west-1.compute.amazonaws.com", "[host-1]"),
    ("ip-10-1-2-3 is down", "[host-1] is down"),
    ("ip-10-1-2-3.ec2.internal", "[host-1]"),
    ("pod vllm-decode-7d9f8b6c4d-x2x9z evicted", "pod [host-1] evicted"),
    ("MASTER_ADDR=gpu7 RANK=0", "MASTER_ADDR=[host-1] RANK=0"),
    ("host='gpu7', port=8000", "host='[host-1]', port=8000"),
    ('{"hostname": "gpu7"}', '{"hostname": "[host-1]"}'),
    ("gpubox: out of memory on GPUBOX", "[host-1]: out of memory on [host-1]"),
    ("container f3a9c0d1e2b4 died", "container [host-1] died"),
    ("alice@vm and vm:8000; a vm is no host", "[user]@[host-1] and [host-1]:8000; a vm is no host"),
    ("GPU-1b2c3d4e-0a1b-2c3d-4e5f-0123456789ab", "[GPU-1]"),
    ("CUDA_VISIBLE_DEVICES=MIG-1b2c3d4e-0a1b-2c3d-4e5f-0123456789ab", "CUDA_VISIBLE_DEVICES=[GPU-1]"),
]
ADDRESSES = [
    ("10.1.2.3", "[address-1]"),
    ("tcp://10.1.2.3:4321", "tcp://[address-1]:4321"),
    (
        "[('10.1.2.3', 80), ('10.1.2.4', 80), ('10.1.2.3', 81)]",
        "[('[address-1]', 80), ('[address-2]', 80), ('[address-1]', 81)]",
    ),
    ("169.254.0.9 and 8.8.8.8", "[address-1] and [address-2]"),
    ("10.1.2.0/24", "[address-1]/24"),
    ("fe80::1ff:fe23:4567:890a%eth0", "[address-1]"),
    ("http://[2001:db8::8a2e:370:7334]:8000/", "http://[[address-1]]:8000/"),
    ("::ffff:10.1.2.3", "[address-1]"),
    ("2001:0db8:0000:0000:0000:8a2e:0370:7334", "[address-1]"),
    ("link/ether 00:1a:2b:3c:4d:5e brd", "link/ether [address-1] brd"),
    ("00-1A-2B-3C-4D-5E", "[address-1]"),
]
STAYS = [
    "sparkdiag repro --dcp 2 --vllm release:0.32.0",
    "http://127.0.0.1:8000/health",
    "http://localhost:8000",
    "http://0.0.0.0:8000 and http://[::1]:8000 and ::",
    "http://HOST:8000/v1",
    "https://github.com/vllm-project/vllm/pull/51555",
    "https://docs.vllm.ai/en/latest/usage/troubleshooting.html",
    "https://download.pytorch.org/whl/cu128",
    "https://raw.githubusercontent.com/vllm-project/vllm/main/setup.py",
    "version 12.8.1.2",
    "version 1.2.3.4 was released",
    "nvidia-cublas-cu12==12.8.4.1",
    "nvidia_cublas_cu12-12.8.4.1-py3-none-manylinux_2_27_x86_64.whl",
    "v1.2.3.4",
    "cuDNN 9.10.2.21",
    "driver 535.104.5.1",
    "0.26.0",
    "sparklab/sm12x_deep_gemm_fallbacks.py:48",
    "vllm/v1/engine/core.py:1588",
    "<frozen importlib._bootstrap>:1241",
    "x[1::2], y[::8], std::vector<at::Tensor>, c10::detail::add::fe",
    "threading.local and self.local and torch._C._local",
    "12:30:45 and 2026-12-01T04:02:04+00:00",
    "TP0:1234 rank-0:1 cuda:0 head:1024",
    "0000:3b:00.0",
    "sha256:9a414da00e628778f7016ffd1e6b15051be1364a2c9fa2cec754e8074b190eab",
    "ipc:///tmp/sparkdiag-5hqldnku/probe",
    "overlay:fused@existing",
    "Qwen/Qwen3-30B-A3B-FP8@main",
    "--user-agent and user: hello there",
    "_fp8_mqa_logits_torch in Worker_TP0_DCP0 (pid 4291)",
    "/opt/site/v/vllm/users/home/views.py",
    "GET /v1/models/home/x HTTP/1.1",
    "~/.cache/vllm and HEAD~1",
    "[host-1] [address-2] [user] ~ [redacted] [GPU-1]",
    "get_dcp_group().world_size",
    "at 10.5 s, 1.2.3, 10.1.2",
    "maximal maxima of maximum; palace, malice",
]


def public(text: str, *, identities: Identities = KNOWN) -> str:
    """``text`` alone, as a report that holds nothing else."""
    redact = PublicText(identities)
    redact.learn(text)
    return redact(text)


@pytest.mark.parametrize(("text", "expected"), [*HOMES, *USERS, *HOSTS, *ADDRESSES])
def test_names_and_addresses_go_and_the_rest_stays(text: str, expected: str) -> None:
    assert public(text) == expected


@pytest.mark.parametrize(("text", "expected"), [*HOMES, *USERS, *HOSTS, *ADDRESSES])
def test_what_is_public_stays_as_it_is(text: str, expected: str) -> None:
    redact = PublicText(KNOWN)
    redact.learn(expected)
    assert redact(expected) == expected
    assert not redact.found.counts


@pytest.mark.parametrize("text", STAYS)
def test_what_tells_of_nobody_stays_byte_for_byte(text: str) -> None:
    assert public(text) == text


def test_a_name_given_away_in_one_text_goes_in_all_of_them() -> None:
    redact = PublicText(Identities())
    texts = ["/home/carol/x", "carol's run", "http://gpu-7:80/", "on gpu-7"]
    for text in texts:
        redact.learn(text)
    assert [redact(text) for text in texts] == ["~/x", "[user]'s run", "http://[host-1]:80/", "on [host-1]"]


def test_names_of_nobody_are_not_learnt_from_homes() -> None:
    redact = PublicText(Identities())
    for text in ("/home/ubuntu/x", "/home/vllm/x", "/home/user"):
        redact.learn(text)
    assert redact("vllm on ubuntu for the user") == "vllm on ubuntu for the user"


def test_numbers_of_an_earlier_public_text_are_not_given_twice() -> None:
    assert public("http://[host-3]:80 and http://gpu-7:80") == "http://[host-3]:80 and http://[host-4]:80"


def test_each_different_text_is_counted_once_and_by_kind() -> None:
    redact = PublicText(KNOWN)
    for text in ["/home/carol/x", "/home/carol/x", "10.1.2.3", "alice", "http://gpu-7/", "HF_TOKEN=abc123DEF456ghi"]:
        redact.learn(text)
        redact(text)
    assert redact.found.counts == {"home folder": 1, "address": 1, "user name": 1, "host name": 1, "secret": 1}


SIGNED = [
    "https://s3.us-east-1.example.com/m.bin?X-Amz-Credential=me&X-Amz-Signature=00ff&X-Amz-Expires=300",
    "https://acct.blob.core.example.com/c/m?sv=1&sig=abc%3D&se=2026",
    "https://cdn-lfs.hf.co/repos/m?Expires=1&Policy=abc&Signature=def&Key-Pair-Id=K1",
]


@pytest.mark.parametrize("url", SIGNED)
def test_the_whole_query_of_a_signed_url_goes(url: str) -> None:
    redact = PublicText(Identities())
    made = redact(f"GET {url} failed")
    assert made == f"GET {url.partition('?')[0]}?[redacted] failed"
    assert redact.found.counts == {"signed URL": 1}
    assert redact(made) == made


@given(st.text(alphabet="abcX019./:@-_~\\ []%=\"'", max_size=60))
def test_twice_is_the_same_as_once(text: str) -> None:
    made = public(text)
    assert public(made) == made


PLACES = ["{}", "cannot reach {}:8000", "http://{}:8000/v1", "'{}'", "({})", "a={}", "x\t{}\ny", "[{}]", "{}, b"]


@given(
    place=st.sampled_from(PLACES),
    name=st.sampled_from(["gpubox", "10.20.30.40", "fd00::12:3456", "gpubox.hpc.uni-hof.de", "ip-10-20-30-40"]),
)
def test_names_of_machines_go_wherever_they_stand(place: str, name: str) -> None:
    assert name not in public(place.format(name))
