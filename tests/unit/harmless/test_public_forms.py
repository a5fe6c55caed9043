"""The forms in which logs give machines and people away, whole tables of them, and what looks alike and must stay."""

import pytest

from sparkdiag.harmless.identities import Identities
from sparkdiag.harmless.public_text import PublicText

NOBODY = Identities()

HOSTS = [
    "{}:12345:12345 [0] NCCL INFO NET/Socket",
    "[2026-11-30 04:01:02] {}:12345:12346 [1] init.cc:1234 NCCL WARN x",
    "(EngineCore pid=1, node={})",
    "(RayWorkerWrapper pid=5, ip={}) x",
    "Nov 30 04:01:02 {} vllm[123]: x",
    "2026-11-30T04:01:02.123+01:00 {} kernel: NVRM: Xid",
    "uname: Linux {} 6.8.0-51-generic #52-Ubuntu SMP x86_64",
    'posix.uname_result(sysname="Linux", nodename="{}")',
    "SLURM_JOB_NODELIST={}[001-004,007]",
    "SLURM_NODELIST={}",
    "srun --nodelist={}[1-3] x",
    "mpirun -np 2 -host {}1,zork2 x",
    "mpirun -H {}1,zork2 x",
    "--hosts {}1:4,zork2:4",
    "torchrun --rdzv-endpoint={}:29400",
    "--rdzv_endpoint {}:29400",
    "ray start --address={}:6379",
    "ray start --node-ip-address={} --head",
    "vllm serve m --host {} --port 8000",
    "vllm serve m --master-addr {}",
    "--data-parallel-address {} -dp 2",
    "--data-parallel-address={}",
    r"https:\/\/{}\/m",
    "data_parallel_master_ip={}",
    "kv_ip={}",
    '"kv_ip": "{}"',
    "'node_ip_address': '{}'",
    "VLLM_HOST_IP={}",
    "MASTER_ADDR={}",
    "hostname: {}",
    "Failed to connect to {}:8000",
    "Connection to {}:5432 refused",
    "listening on {}:8000",
    "<{}:1234>",
    "Could not resolve host: {}",
    "getaddrinfo {} failed",
    "Failed to resolve '{}' ([Errno -2])",
    'could not translate host name "{}" to address',
    "ssh: connect to host {} port 22: Connection refused",
    "Name or service not known: {}",
    "ssh -p 22 zork@{}",
    "mount -t nfs {}:/export/models /models",
    r"\\{}\share\x",
    r"'\\\\{}\\share'",
]
NAMES = ["zorkhost", "zork-host", "zork07"]
WHOLE = [
    "gpu07.zorkcorp.com",
    "gpu07.zorkcorp.com:8000 refused",
    "at registry.zork.com:5000/x",
    "zork.openai.azure.com",
    "zorkacc.blob.core.windows.net",
    "123456789012.dkr.ecr.us-east-1.amazonaws.com/x",
    "arn:aws:iam::123456789012:role/x",
    "zork-gpu.corp.de down",
    "gpu07.zork.prod",
    "dns zork.example-corp.net resolved",
    "zork7.corp.io:8000",
    "zork.abc123.us-east-1.eks.amazonaws.com",
    "zorkhead.home",
    "zorkhead.fritz.box",
    "zork.ngrok.io",
    "zork.trycloudflare.com",
    "ssh.zork.vast.ai",
    "zorknode001:29500",
    "zork-node-7:/data/models",
    "DESKTOP-ZORK123",
    "Zorks-MacBook-Pro",
]
HOMES = [
    "-I/home/zorkman/x",
    "g++ -L/home/zorkman/lib",
    "-isystem/home/zorkman/include",
    "--prefix/home/zorkman",
    "../../home/zorkman/x",
    ".../home/zorkman",
    "/proc/self/cwd/../home/zorkman/x",
    "/home//zorkman/x",
    "//home/zorkman/x",
    "/home/./zorkman/x",
    "/home/../home/zorkman/x",
    "/host/home/zorkman/x",
    "/rootfs/home/zorkman",
    "/proc/1/root/home/zorkman",
    "/overlay/home/zorkman/x",
    "/srv/home/zorkman",
    "/opt/home/zorkman/x",
    "/mnt/c/Users/zorkman/x",
    "/c/Users/zorkman",
    "/cygdrive/c/Users/zorkman",
    "//wsl$/Ubuntu/home/zorkman/x",
    r"\\wsl.localhost\Ubuntu\home\zorkman",
    r"\\srv\Users\zorkman\x",
    r"C:\Documents and Settings\zorkman\x",
    "/home1/zorkman/x",
    "/home2/zorkman",
    "/home/z/zorkman/x",
    "/lustre/home/z/zorkman/x",
    r"/home/CORP\zorkman/x",
    r"\u002fhome\u002fzorkman",
    "-I/root/x -I/home/zorkman",
]
USERS = [
    '"USER": "zorkman"',
    "'USER': 'zorkman'",
    "SLURM_JOB_USER=zorkman",
    "owner=zorkman",
    "username: zorkman",
    '"author": "zorkman"',
    "author='zorkman'",
    "cd ~zorkman",
    "ssh zorkman@gpu",
    "zorkman%40corp.com",
    '"zorkman x"@corp.com',
    "/tmp/hsperfdata_zorkman",
    "/run/media/zorkman/disk",
    "session opened for user zorkman",
    "chown -R zorkman:zorkman x",
    "su - zorkman",
    "Author: Zorkman X <a@corp.com>",
    "Signed-off-by: Zorkman X <[user]@[host-1]>",
    "Zorkman X <a@corp.com>",
    "mail from X. Y. Zorkman <[user]@[host-1]>",
    "Co-authored-by: Zorkman <1+z@users.noreply.github.com>",
]
ADDRESSES = [
    "10.20.30.40",
    "::ffff:0a14:1e28",
    "ipv6:2001:db8::7",
    "ipv6:%5B2001:db8::7%5D:50051",
    "ipv4:10.20.30.40:50051",
    r"failed\n10.20.30.40",
    r"\t10.20.30.40",
    r"\x1b10.20.30.40",
    "%2F10.20.30.40",
    "10.20.30.40-10.20.30.50",
    "runtime 10.20.30.40:80",
    "this driver: 10.20.30.40:8000 x",
    "kernel: 192.168.3.4 dst",
    "build 172.16.3.4",
    "host-10.20.30.40",
    "worker-10.20.30.40",
    "pod_10.20.30.40",
    "40.30.20.10.in-addr.arpa",
    "10-20-30-40.kubernetes.default",
    "guid 0x0242acfffe110002",
    "0242.ac11.0002",
]
STAYS = [
    "vllm/v1/engine/core.py:1588 and file.py:123:45 [0] x",
    "(EngineCore pid=4291) INFO 12-01 04:02:04 [core.py:123] x",
    "(Worker_TP0 pid=12345) WARNING [parallel_state.py:1208] rank 0",
    "rank:0 key:value TP0:1234 step10:1024 layer12:1024 mlx5_0:1 cuda:0 float16:1024 sm120:1234",
    "localhost:12345:12345 [0] NCCL INFO Bootstrap",
    "NCCL version 2.27.5+cuda12.9",
    "Nov 30 04:01:02 INFO main: x",
    "2026-11-30T04:01:02 INFO vllm[123]: x",
    "Linux kernel 6.8 and Linux 6.8.0-51-generic",
    "hostname: str, host: Optional[str]",
    "hostname: str",
    "kv_ip=self.kv_ip, master_ip=get_ip(), ip=ip",
    "data_parallel_master_ip=args.data_parallel_address",
    "the --host option, --host is, --host HOST --port 1",
    "--nodelist=[host-1] --hosts 4 --host=0.0.0.0",
    "-H 'Content-Type: application/json'",
    "connect to the server: timeout",
    "connected to it in 1:1000 and at 12:34:56",
    "<module>:1234 <string>:1 <lambda>:1000",
    "resolve dependencies; resolve 'args.host'",
    "torch.nn.functional.io vllm.utils.io:123 self.q.net torch.distributed.device_mesh",
    "is_torch_equal_or_newer('2.11.0.dev') 1.2.3.dev20260101",
    "k8s.pod.label.mycompany.io",
    "Path.home() and path.home",
    "https://github.com/vllm-project/vllm www.nvidia.com docs.python.org",
    "Qwen/Qwen3-30B-A3B-FP8 meta-llama/Llama-3.1-8B:latest deepseek-ai/DeepSeek-V3.2@main",
    "nvidia_cublas_cu12-12.8.4.1-py3-none-manylinux_2_27_x86_64.whl",
    "nvidia-curand-cu12==10.3.9.90 and nvidia-curand-10.3.9.90",
    "libcudnn_10.2.3.4 driver 10.2.3.4",
    r"re.compile(r'\\begin\s+\\frac')",
    r"'\\n\\t' \\hline\n",
    "cache-dir:/opt/x root:/data name:/models cwd:/home",
    "0x00007ffffe123456 0x7f0000fffe00",
    "nvidia-cufft-cu12        11.3.3.83",
    "| nvidia-cufft-cu12 | 11.3.3.83 |",
    '"nvidia-cufft-cu12": "11.3.3.83"',
    "cufft 11.3.3.83 cusolver 11.7.3.90 curand 10.3.9.90",
    "TensorRT 10.13.3.9 model_version 1.10.0.1",
    "opencv-python-headless    4.12.0.88",
    "1234.5678.9012 1-2-3-4 2026-12-01.json",
    "../homepage/index.html -I/usr/include -L/usr/local/cuda/lib64 -isystem /opt/x",
    "GET /v1/models/home/x /api/v1/users/list",
    "x//home y",
    "username: str",
    "owner=self._owner, author=None, user=None, owner: the owner",
    "x = ~mask; y = ~(a | b)",
    "for user input",
    "From: a < b",
    "Usage: Foo Bar <path> [x@y]",
    "torch.prod x.shape.prod np.prod",
    "12:34:56 1:2:3 ::1 ::",
]


def public(text: str) -> str:
    redact = PublicText(NOBODY)
    redact.learn(text)
    return redact(text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", HOSTS)
def test_a_host_goes_wherever_programs_write_one(place: str, name: str) -> None:
    made = public(place.format(name))
    assert name not in made
    assert "[host-1]" in made


@pytest.mark.parametrize("text", WHOLE)
def test_a_host_is_known_by_its_whole_name(text: str) -> None:
    made = public(text)
    assert "zork" not in made.lower() and "123456789012" not in made
    assert "[host-1]" in made


@pytest.mark.parametrize("text", [*HOMES, *USERS])
def test_a_user_goes_out_of_every_form_of_a_path_and_wherever_one_is_told(text: str) -> None:
    assert "zork" not in public(text).lower()


@pytest.mark.parametrize("text", ADDRESSES)
def test_an_address_goes_in_every_notation(text: str) -> None:
    redact = PublicText(NOBODY)
    made = redact(text)
    assert "[address-1]" in made
    assert not any(part in made for part in ("20.30", "20-30", "2001", "0a14", "168", "172.", "30.20", "0242"))


@pytest.mark.parametrize("text", STAYS)
def test_what_looks_alike_stays_byte_for_byte(text: str) -> None:
    assert public(text) == text


@pytest.mark.parametrize(
    "text",
    [*(place.format("zork-7") for place in HOSTS), *WHOLE, *HOMES, *USERS, *ADDRESSES],
)
def test_a_form_made_public_twice_is_as_made_once(text: str) -> None:
    made = public(text)
    assert public(made) == made


def test_a_host_of_nccl_is_known_everywhere() -> None:
    redact = PublicText(NOBODY)
    texts = ["zorkhost:12:34 [0] NCCL INFO x", "rank 3 of zorkhost died"]
    for text in texts:
        redact.learn(text)
    assert redact(texts[1]) == "rank 3 of [host-1] died"


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ("/home/llm/x", "the LLM engine"),
        ("/home/inference/x", "vllm/inference/flash_attn.py"),
        ("/home/deepseek/x", "deepseek-ai/DeepSeek-V3.2"),
        ("/home/qwen3/x", "Qwen3-30B"),
        ("GET http://vllm-project/x", "https://github.com/vllm-project/vllm"),
        ("/home/sparse/x", "sparse_attn_indexer"),
        ("/tmp/torchinductor_logits/x", "_fp8_mqa_logits_torch"),
        ('"owner": "vllm-project"', "https://github.com/vllm-project/vllm/pull/51555"),
        ("user=zeal", "with zeal"),
        ("author=merit", "on merit"),
    ],
)
def test_a_user_named_like_a_thing_takes_no_other_word_along(told: str, text: str) -> None:
    redact = PublicText(NOBODY)
    redact.learn(told)
    redact.learn(text)
    assert redact(text) == text
