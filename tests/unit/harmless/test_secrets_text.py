import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.harmless.documents import NOT_RECORDED, redact_argv, redact_document, redact_env
from sparkdiag.harmless.secrets import REDACTED, LineRedactor, redact_text

PLANTED = "Zq7Xw9Planted0Secret4Value"

SHAPED = [
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "gho_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "sk-proj-abcdefghijklmnop1234",
    "AKIAIOSFODNN7EXAMPLE",
    "glpat-abcdefghij1234567890",
    "nvapi-abcdefghij1234567890",
    "xoxb-1234567890-abcdefghij",
    "dckr_pat_abcdefghij1234567890",
    "GOCSPX-abcdefghij1234567890",
    "pplx-abcdefghij1234567890",
    "xai-abcdefghij1234567890",
    "csk-abcdefghij1234567890",
    "tvly-abcdefghij1234567890",
    "lsv2_pt_abcdefghij1234567890",
    "dapi0123456789abcdef0123456789abcdef",
    "AGE-SECRET-KEY-1ABCDEFGHIJ234567890",
    "whsec_abcdefghij1234567890",
    "tgp_v1_abcdefghij1234567890",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
]

NAMED = [
    f"--api-key {PLANTED}",
    f"--api-key={PLANTED}",
    f"--api-key {PLANTED} {PLANTED} --port 8000",
    f"--api_key '{PLANTED}'",
    f"--hf-token {PLANTED}",
    f"--hf_token={PLANTED}",
    f"--api-key=-{PLANTED}",
    f"['serve', '--api-key', '{PLANTED}']",
    f"non-default args: {{'api_key': ['{PLANTED}'], 'port': 8000}}",
    f"api_key='{PLANTED}', hf_token=None",
    f'"hf_token": "{PLANTED}"',
    f"HF_TOKEN={PLANTED}",
    f"export VLLM_API_KEY={PLANTED}",
    f"AWS_SECRET_ACCESS_KEY: {PLANTED}",
    f"Authorization: Bearer {PLANTED}",
    f"authorization: Token {PLANTED}",
    f"{{'Authorization': 'Bearer {PLANTED}'}}",
    f"-H 'X-API-Key: {PLANTED}'",
    f"using bearer {PLANTED} now",
    f"https://user:{PLANTED}@host.example/path",
    f"https://{PLANTED}@host.example/path",
    f"postgres://me:p@{PLANTED}@db.example/x",
    f"https://s3.example/m.bin?X-Amz-Signature={PLANTED}&X-Amz-Expires=300",
    f"https://blob.example/m?sv=1&sig={PLANTED}",
    f"https://x.example/?a=1&access_token={PLANTED}",
    f"client_secret: {PLANTED}",
    f"password = {PLANTED}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{PLANTED}\n-----END RSA PRIVATE KEY-----",
    f"PASSWORD=the {PLANTED}",
    f"api_key: not {PLANTED}",
    f"api_key: found '{PLANTED}'; allowed: nothing",
    f"password: set found {PLANTED}",
    f"token: the {PLANTED}",
    f"api key: {PLANTED}",
    f"your API key is {PLANTED}",
    f"WANDB_API_KEY {PLANTED} rejected",
    f"api_key\t{PLANTED}",
    f"https://u:a/{PLANTED}@h/z",
    f"postgres://u:p#{PLANTED}@h",
    f"//me:{PLANTED}@proxy:3128/",
    f'{{"credentials": {{"u": "a}}b", "v": "{PLANTED}"}}, "a": 1}}',
    f'{{"tokens": ["{PLANTED}"]}}',
    f"sessionid={PLANTED}",
    f"session_id: {PLANTED}",
    f"JSESSIONID={PLANTED}",
    f'Authorization: Digest username="u", response="{PLANTED}"',
    f'"Authorization: Digest username="u", response="{PLANTED}""',
    f'Digest username="u", response="{PLANTED}"',
    f"Negotiate {PLANTED}",
    f"machine h password {PLANTED} login u",
    f"curl -uu:{PLANTED} http://h",
    f"curl -u u:{PLANTED} http://h",
    f"sshpass -p {PLANTED} ssh h",
    f"OTEL_EXPORTER_OTLP_HEADERS=x-honeycomb-team={PLANTED}",
    f"VLLM_HTTP_HEADERS=X-Auth: {PLANTED}",
    f"https://hooks.slack.com/services/T0/B0/{PLANTED}",
    f"https://discord.com/api/webhooks/123/{PLANTED}",
    f"--api-ke {PLANTED} --port 1",
    f"--hf-tok={PLANTED}",
    f"secret.toml: {PLANTED}",
]


@pytest.mark.parametrize("secret", SHAPED)
@pytest.mark.parametrize("around", ["{}", "token {} end", "'{}'", "x={},", "/path/{}/file", "[{}]", "(a_{})"])
def test_known_shapes_go_wherever_they_stand(secret: str, around: str) -> None:
    assert secret not in redact_text(around.format(secret))
    assert REDACTED in redact_text(around.format(secret))


@pytest.mark.parametrize("text", NAMED)
def test_what_follows_a_known_name_goes(text: str) -> None:
    assert PLANTED not in redact_text(text)
    assert PLANTED not in LineRedactor()(f"(APIServer pid=3) INFO 05-26 08:15:02 [x.py:1] {text}\n")


@pytest.mark.parametrize(
    "text",
    [
        "prompt_tokens_total 20000, max_num_batched_tokens=2048, eos_token='</s>', bos_token_id=1",
        "non-default args: {'port': 8123, 'api_key': None, 'hf_token': None, 'seed': 0}",
        "VLLM::Worker_TP0_DCP0 at /usr/lib/python3.11/site-packages/vllm/v1/core.py:42",
        "http://127.0.0.1:8000/v1/completions 200 OK",
        "tokenizer=/models/lab, tokenizer_mode=auto, skip_tokenizer_init=False",
        "KV cache block_size: 16, key: 1024/6000, num_key_value_heads: 1",
        "sha 3f2a9c41d07be85516f0c9e2ab73d4418c6d5e90",
        "prefix cache hit rate: 0.0%, task-based scheduling",
        "scenario file /etc/passwd: TOML syntax: expected a key",
        "secret.toml: TOML syntax: expected a key",
        "secret.toml:",
        "cloning git+https://host.test:8000/org/repo@main, pplx-kernels, xai-org/grok, pass=1, pw=auto",
        "tokens=[1, 2, 3], tokens: ['</s>', 'hello'], login failed, digest of the image, per token 0.123456789012",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("PASSWORD=the hunter2pw", f"PASSWORD={REDACTED}"),
        ("password: correct horse battery, then", f"password: {REDACTED}, then"),
        ("HF_TOKEN=abc vllm serve m", f"HF_TOKEN={REDACTED} vllm serve m"),
        ("pass=Sup3rPw otp=123456", f"pass={REDACTED} otp={REDACTED}"),
        ("machine h\nlogin u\npassword p4pw", f"machine h\nlogin u\npassword {REDACTED}"),
        (f"wandb login {'0123456789abcdef' * 3}", f"wandb login {REDACTED}"),
        ('{"credentials": {"u": "x"}, "a": 1}', f'{{"credentials": {REDACTED}, "a": 1}}'),
        ("HF_TOKEN: found 'x'; allowed: no", f"HF_TOKEN: found {REDACTED}; allowed: no"),
    ],
)
def test_the_value_goes_as_a_whole_and_nothing_else(text: str, kept: str) -> None:
    assert redact_text(text) == kept


def test_argv_loses_what_programs_take_without_a_name() -> None:
    argv = ["wandb", "login", "0123456789abcdef" * 3, "-u", "me:pw", "--hf-tok", "x", "--tokens", "20000"]
    assert redact_argv(argv) == (
        "wandb", "login", REDACTED, "-u", REDACTED, "--hf-tok", REDACTED, "--tokens", "20000",
    )  # fmt: skip


def test_argv_loses_values_up_to_the_next_flag() -> None:
    argv = ["vllm", "serve", "m", "--api-key", "one", "-two", "--port", "8000", "--hf-token=three", "--seed", "0"]
    assert redact_argv(argv) == (
        "vllm", "serve", "m", "--api-key", REDACTED, REDACTED, "--port", "8000",
        f"--hf-token={REDACTED}", "--seed", "0",
    )  # fmt: skip


def test_the_server_command_stays_whole() -> None:
    argv = (
        "python",
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--max-num-batched-tokens",
        "2048",
        "--tokenizer",
        "x",
    )
    assert redact_argv(argv) == argv


def test_env_is_by_allow_list_and_never_by_secret_name() -> None:
    env = {
        "VLLM_CPU_OMP_THREADS_BIND": "0|1",
        "VLLM_API_KEY": PLANTED,
        "VLLM_S3_SECRET": PLANTED,
        "NCCL_DEBUG": "INFO",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "OMP_NUM_THREADS": "1",
        "HF_TOKEN": PLANTED,
        "HOME": "/home/alice",
        "MY_DATABASE": PLANTED,
        "VLLM_PROXY": f"http://u:{PLANTED}@proxy",
    }
    kept = redact_env(env)
    assert kept == {
        "VLLM_CPU_OMP_THREADS_BIND": "0|1",
        "NCCL_DEBUG": "INFO",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "OMP_NUM_THREADS": "1",
        "VLLM_PROXY": f"http://{REDACTED}@proxy",
    }
    assert redact_env(env, keep_names=True)["HF_TOKEN"] == NOT_RECORDED
    assert PLANTED not in str(redact_env(env, keep_names=True))


def test_a_document_is_clean_at_every_depth() -> None:
    document = {
        "command": ["sparkdiag", "repro", "--", "--api-key", PLANTED],
        "server_env": {"HF_TOKEN": PLANTED, "VLLM_X": "1"},
        "scenario": {"server": {"env": {"SOME_NAME": PLANTED}, "args": [f"--hf-token={PLANTED}"]}},
        "deep": [{"title": f"vllm serve --api-key {PLANTED}"}, [[f"Bearer {PLANTED}"]]],
        "api_key": PLANTED,
        "hf_token": [PLANTED],
        "count": 3,
        "none": None,
    }
    clean = redact_document(document)
    assert PLANTED not in json.dumps(clean)
    assert clean["server_env"] == {"VLLM_X": "1"}
    assert clean["scenario"]["server"]["env"] == {"SOME_NAME": NOT_RECORDED}
    assert clean["count"] == 3
    assert clean["none"] is None


@given(
    st.one_of(
        st.text(), st.lists(st.sampled_from([*NAMED, *SHAPED, " ", "--api-key", "=", "'", "[", "?key="])).map("".join)
    )
)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@given(st.text(max_size=30), st.sampled_from(SHAPED), st.text(max_size=30))
def test_no_neighbourhood_saves_a_shape(before: str, secret: str, after: str) -> None:
    if before[-1:].isascii() and before[-1:].isalnum():
        before += " "
    assert secret not in redact_text(before + secret + after)


@given(st.lists(st.text()))
def test_argv_keeps_its_length(argv: list[str]) -> None:
    assert len(redact_argv(argv)) == len(argv)


@pytest.mark.parametrize(
    "piece",
    [
        "a_",
        "a-",
        "eyJaaaaaa.",
        "--token ",
        "://",
        "?key=",
        "A",
        "'",
        "Authorization:",
        "sk-",
        "TOKEN",
        "api_key_",
        "api_key=[",
        "x://a",
        "api_key={}",
        "tokens=[",
        "a/secret: ",
        "secret.toml: ",
        "token: the ",
        "api_key: none ",
    ],
)
def test_a_long_hostile_line_does_not_take_long(piece: str) -> None:
    assert isinstance(redact_text(piece * (40_000 // len(piece))), str)
