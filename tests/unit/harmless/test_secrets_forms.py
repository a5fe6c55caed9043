"""The grammars in which a chosen password is told, and what reads alike and is none."""

import pytest

from sparkdiag.harmless.doubtful import doubtful
from sparkdiag.harmless.secrets import LineRedactor, redact_text

CHOSEN = "Hunter2pw"
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
MIXED = "Ab3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZ"

TOLD = [
    '<add key="password" value="{}"/>',
    "auth=('u', '{}')",
    'basic_auth=("u", "{}")',
    'HTTPBasicAuth("u", "{}")',
    "{{'auth': ('u', '{}')}}",
    "redis-server --requirepass {}",
    "ENV OPENAI_API_KEY {}",
    "setenv HF_TOKEN {}",
    "set -x PGPASSWORD {}",
    "OPENAI_API_KEY -> {}",
    "docker login -u x -p {}",
    "az login -u x -p {}",
    'curl -H "X-Auth: {}"',
    "https://h/a?auth={}",
    "https://h/a?x=1&jwt={}",
    "https://h/a?session={}",
    "password：{}",
    "PASSWORD＝{}",
    "passwort: {}",
    "&quot;api_key&quot;:&quot;{}&quot;",
    "api_key&#61;{}",
    "api_key%22%3A%22{}%22%2C",
    "密码: {}",
    "пароль={}",
    "contraseña: {}",
]
OVER_LINES = [
    ["- name: DB_PASSWORD", '  value: "{}"', "  image: x"],
    ["  name: HF_TOKEN", "  value: {}", "- name: X"],
    ['{{"name": "API_KEY",', ' "value": "{}"}}'],
]
SHAPED = [
    f"HRKU-{MIXED}",
    f"ATBB{MIXED}",
    f"tskey-auth-{MIXED[:12]}-{MIXED}",
    f"glsa_{MIXED}_0a1b2c3d",
    f"glc_{MIXED}",
    f"NRAK-{MIXED.upper()[:27]}",
    f"CCIPAT_{MIXED}_{HEX}",
    f"rubygems_{HEX}{HEX[:16]}",
    f"rpa_{MIXED.upper()}",
    f"hf_oauth_{MIXED}",
    f"wandb_v1_{MIXED}",
    f"fm2_{MIXED}",
    f"fo1_{MIXED}",
    f"sk_{HEX}{HEX[:16]}",
    f"LTAI{MIXED[:20]}",
    f"AKID{MIXED}",
    f"sbp_{HEX}{HEX[:8]}",
    f"{MIXED}AZDO1a2B",
]
STAYS = [
    "Signature: _fp8_mqa_logits_torch",
    "signature=_fp8_mqa_logits_sm12x, sig: fp8_mqa_logits2",
    "self.key = key; secret_len=4; password_length: 12; token_count=8",
    "ENV PATH /usr/bin:/bin; set -x; setenv CUDA_HOME /usr/local/cuda",
    "auth=None, auth=(), auth=('u',), auth=auth, basic_auth=(user, password)",
    "def get(x: int) -> int; api -> server; key -> value",
    "sparkdiag post RUN --not-secret 1a2b3c4d --not-secret=FINGERPRINT",
    "creds: ChannelCredentials | None, maybe_creds = next(",
    "login -h; huggingface-cli login; docker login",
    "- name: rank\n  value: 0",
    "name: vllm\nvalue: DB",
    "sk_buff glc_ rpa_config fm2_x AKIDO LTAI sbp_ tskey- wandb_v1_ akid",
    "model：Qwen，速度：快",
    "https://h/a?session_count=3&author=x",
    "kernel.sm90_fp8_gemm_1d2d.0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d/kernel.cubin",
]


@pytest.mark.parametrize("place", TOLD)
def test_a_chosen_password_goes_wherever_a_grammar_tells_one(place: str) -> None:
    made = redact_text(place.format(CHOSEN))
    assert CHOSEN not in made
    assert redact_text(made) == made


@pytest.mark.parametrize("lines", OVER_LINES)
def test_a_value_below_its_name_goes(lines: list[str]) -> None:
    text = "\n".join(lines).format(CHOSEN)
    made = redact_text(text)
    assert CHOSEN not in made
    assert made.splitlines()[0] == text.splitlines()[0]
    assert len(made.splitlines()) == len(lines)
    assert [CHOSEN in line for line in map(LineRedactor(), text.splitlines())] == [False] * len(lines)


@pytest.mark.parametrize("token", SHAPED)
@pytest.mark.parametrize("place", ["with {} now", "x={}", "'{}'"])
def test_a_vendors_token_goes_by_its_look_alone(place: str, token: str) -> None:
    assert token[-12:] not in redact_text(place.format(token))


@pytest.mark.parametrize("text", STAYS)
def test_what_reads_like_one_stays_byte_for_byte(text: str) -> None:
    assert redact_text(text) == text


def test_a_key_of_two_halves_of_which_none_is_doubtful_alone_is_doubtful() -> None:
    token = f"{HEX}.lLgfbcvMUBCIPrGL"
    assert list(doubtful(f"with {token} now")) == [token]
    assert not list(doubtful(f"x {HEX}.kernelkernelkern y"))
