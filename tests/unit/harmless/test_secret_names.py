import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.harmless.documents import redact_argv, redact_document
from sparkdiag.harmless.names import is_basic, is_secret_option, kind_of, looks_random
from sparkdiag.harmless.secrets import REDACTED


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "apiKey", "APIKey", "x-api-key", "api-keys", "HF_TOKEN", "hf_token", "clientSecret", "db.password",
        "PGPASSWORD", "PRIVATE-TOKEN", "accessToken", "AWS_SECRET_ACCESS_KEY", "aws_access_key_id", "GITHUB_PAT",
        "subscription-key", "Authorization", "set-cookie", "passphrase", "OPENAI_API_KEY", "DB_PASS", "credentials",
    ],
)  # fmt: skip
def test_names_that_tell(name: str) -> None:
    assert kind_of(name) == "telling"


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens", "num_tokens", "tokenizer", "tokenizer_mode", "TOKENIZERS_PARALLELISM", "eos_token", "pad_token",
        "k_cache_prefix", "key", "kv_key", "num_key_value_heads", "head_start", "seq_len_kv", "monkey", "bypass",
        "VLLM_MAX_TOKENS", "prompt_tokens_total", "passed", "pattern", "authors",
    ],
)  # fmt: skip
def test_names_of_a_models_things_do_not(name: str) -> None:
    assert kind_of(name) == "plain"
    assert not is_secret_option(f"--{name}")


def test_a_hint_asks_for_a_random_value() -> None:
    assert kind_of("token") == kind_of("auth") == kind_of("my_token") == "hinting"
    assert looks_random("Qx7wPz4Rm8Kt") and looks_random("0123456789abcdef0123")
    assert not looks_random("</s>") and not looks_random("/models/lab-0.32.0") and not looks_random("auto")


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1, max_size=40))
def test_a_user_and_password_in_base64_is_known(password: str) -> None:
    assert is_basic(base64.b64encode(f"me:{password}".encode()).decode().rstrip("="))


@given(st.text(), st.text(max_size=300))
def test_no_name_or_value_raises(name: str, value: str) -> None:
    kind_of(name)
    looks_random(value)
    is_basic(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["api_key", "env", "server_env", "name", "value", "token", "x", "locals"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(json_values)
def test_a_document_cleaned_twice_is_cleaned_once(document: object) -> None:
    once = redact_document(document)
    assert redact_document(once) == once


def test_everything_below_a_telling_name_goes() -> None:
    document = {"credentials": {"user": "me", "pins": [1234, "x"], "set": True}, "password": 123456, "tokens": 20000}
    assert redact_document(document) == {
        "credentials": {"user": REDACTED, "pins": [REDACTED, REDACTED], "set": True},
        "password": REDACTED,
        "tokens": 20000,
    }
    named = [{"name": "HF_TOKEN", "value": "abc"}, {"name": "SEED", "value": "1"}]
    assert redact_document(named) == [{"name": "HF_TOKEN", "value": REDACTED}, {"name": "SEED", "value": "1"}]


def test_a_value_that_looks_like_an_option_is_no_option() -> None:
    argv = ["serve", "--auth", "--x9_random-value", "more", "--port", "1", "Basic", "bWU6cGFzcw==", "basic", "usage"]
    assert redact_argv(argv) == (
        "serve", "--auth", REDACTED, REDACTED, "--port", "1", "Basic", REDACTED, "basic", "usage",
    )  # fmt: skip
