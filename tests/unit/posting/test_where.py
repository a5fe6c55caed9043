"""Which conversation is meant, where its API is, and where a token may go."""

import string
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from github import Github
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.errors import UsageError
from sparkdiag.posting.tokens import GITHUBS, no_token, token_in, variables_for
from sparkdiag.posting.where import api_of, checked_api_url, conversation_at, host_of, repository_of, target_of

GHES = "https://ghe.example.com/api/v3"


@pytest.mark.parametrize(
    ("text", "api", "label"),
    [
        ("vllm-project/vllm#12", "https://api.github.com", "vllm-project/vllm#12"),
        (" o/r.py#1 ", "https://api.github.com", "o/r.py#1"),
        ("https://github.com/o/r/pull/5", "https://api.github.com", "o/r#5"),
        ("https://www.github.com/o/r/pull/5/files?w=1#discussion_r1", "https://api.github.com", "o/r#5"),
        ("http://github.com/o/r/issues/5#issuecomment-9", "https://api.github.com", "o/r#5"),
        ("https://ghe.example.com/o/r/pull/5", GHES, "o/r#5"),
        ("https://ghe.example.com:8443/o/r/pull/5", "https://ghe.example.com:8443/api/v3", "o/r#5"),
        ("https://acme.ghe.com/o/r/issues/5", "https://api.acme.ghe.com", "o/r#5"),
    ],
)
def test_a_conversation_by_its_name_or_address(text: str, api: str, label: str) -> None:
    found = target_of(text, asked_api=None)
    assert (found.api_url, found.label) == (api, label)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "o/r",
        "o/r#0",
        "o/r#x",
        "o/..#1",
        "-o/r#1",
        "o/r/s#1",
        "https://github.com/o/r",
        "https://github.com/o/r/commit/5",
        "https://github.com@evil.example/o/r/pull/5",
        "https://u:p@github.com/o/r/pull/5",
        "ftp://github.com/o/r/pull/5",
        "https://[::1/o/r/pull/5",
        "https://github.com/o/../pull/5",
        "https://[::1]/o/r/pull/5",
        "https://[::1].evil.example/o/r/pull/5",
        "https://github.com\\evil.example/o/r/pull/5",
        "https://gist.github.com/o/r/pull/5",
        "https://api.github.com/o/r/pull/5",
        "https://github.com:0/o/r/pull/5",
        "https://\u212aithub.com/o/r/pull/5",
        "https://.ghe.com/o/r/pull/5",
        "https://github.com/o/r/pull/5\n",
        "https://github.com/o/r/pull/5\u202e",
    ],
)
def test_what_names_no_conversation(text: str) -> None:
    if text.endswith("5\n"):
        assert target_of(text.strip(), asked_api=None).number == 5
        return
    with pytest.raises(UsageError):
        target_of(text, asked_api=None)


@given(text=st.text(max_size=60))
def test_whatever_is_typed_is_a_conversation_or_a_usage_error(text: str) -> None:
    try:
        found = target_of(text, asked_api=None)
    except UsageError as error:
        assert "\n" not in error.message
    else:
        assert set(found.repository) <= set(string.ascii_letters + string.digits + "/._-")
        assert found.api_url.startswith("https://")


@pytest.mark.parametrize("host", ["api.github.com", "API.GitHub.com", "api.github.com:443", "Api.github.com:0443"])
@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
@pytest.mark.parametrize("end", ["", "/", "//"])
def test_one_api_has_one_spelling_and_its_own_token(host: str, scheme: str, end: str) -> None:
    api = checked_api_url(f"{scheme}://{host}{end}")
    assert api == "https://api.github.com"
    assert variables_for(api, trusted=True, environ={}) == GITHUBS
    web = host.lower().removeprefix("api.")
    found = target_of(f"{scheme}://{web}/o/r/pull/5", asked_api=None)
    assert (found.api_url, found.trusted) == (api, True)


ODD = st.lists(
    st.sampled_from(
        ["http", "https", "HTTPS", "ftp", ":", "//", "/", "\\", "@", "[", "]", "::1", "[::1]", "127.0.0.1", "localhost",
         "github.com", "api.github.com", "GITHUB.COM", "acme.ghe.com", "evil.example", ".", "..", ":443", ":80", ":0",
         ":99999", "%2e", "%00", "?", "#", ";", ",", " ", "\t", "\n", "\u200b", "\u3002", "\uff0f", "\u017f", "\u212a",
         "\u0130", "\uff11", "\ud800", "o/r/pull/5", "/o/r/issues/5", "o/r#5", "api/v3", "x" * 64, "-", "_", "://"]
    )
    | st.characters(),
    max_size=12,
).map("".join)  # fmt: skip


@given(text=ODD)
def test_whatever_is_typed_is_an_api_that_can_be_asked_or_a_usage_error(text: str) -> None:
    for url in (text, f"https://{text}", f"http://{text}", f"http://127.0.0.1{text}", f"https://api.github.com{text}"):
        try:
            api = checked_api_url(url)
        except UsageError as error:
            assert error.message.isprintable()
            continue
        assert checked_api_url(api) == api
        assert api.isascii() and api.isprintable() and not set(api) & set("@\\[]?# %")
        host = urlsplit(api).hostname
        assert api.startswith("https://") or host == "localhost" or ip_address(host or "").is_loopback
        hub = Github(base_url=api)
        assert hub.requester.hostname_and_port == urlsplit(api).netloc
        is_githubs = host_of(api) == "github.com" or host_of(api).endswith(".ghe.com")
        assert (variables_for(api, trusted=True, environ={}) == GITHUBS) == is_githubs


@given(text=ODD)
def test_whatever_address_is_pasted_leads_to_one_host(text: str) -> None:
    for address in (text, f"https://{text}/o/r/pull/5", f"https://github.com{text}/o/r/pull/5"):
        try:
            found = target_of(address, asked_api=None)
        except UsageError as error:
            assert error.message.isprintable()
            continue
        assert checked_api_url(found.api_url) == found.api_url
        assert conversation_at(address) in (None, (found.repository, found.number))


def test_an_api_that_was_typed_wins_and_must_fit_the_address() -> None:
    assert target_of("o/r#1", asked_api=f"{GHES}/").api_url == GHES
    assert target_of("o/r#1", asked_api=None, usual_api=GHES).api_url == GHES
    assert target_of("https://github.com/o/r/pull/1", asked_api=None, usual_api=GHES).api_url == api_of("github.com")
    assert target_of("https://github.com/o/r/pull/1", asked_api="http://127.0.0.1:9").api_url == "http://127.0.0.1:9"
    with pytest.raises(UsageError, match="API of ghe"):
        target_of("https://github.com/o/r/pull/1", asked_api=GHES)


@pytest.mark.parametrize(
    "url",
    [
        "http://ghe.example.com/api/v3",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "https://user:pass@ghe.example.com",
        "https://ghe.example.com/?x=1",
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "https://",
        "https://a b",
        "https://a:port",
        "https://a:0",
        "https://a:65536",
        "https://a:\uff18",
        "http://[::1]:80",
        "http://[::1].evil.example",
        "https://[::1",
        "https://github.com\\evil.example",
        "https://api.github.com.",
        "https://api.github.com%2eevil.example",
        "https://\u0430pi.github.com",
        "https://ap\u0131.github.com",
        "https://ghe.example.com/../x",
        "http\u017f://api.github.com",
        "https://github\u3002com",
    ],
)
def test_where_no_token_may_travel(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked_api_url(url)
    assert "pass" not in refused.value.message.replace("password", "")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "http://localhost:1/api/v3", GHES])
def test_where_a_token_may_travel(url: str) -> None:
    assert checked_api_url(url) == url


@pytest.mark.parametrize("host", ["github.com", "acme.ghe.com", "ghe.example.com", "ghe.example.com:8443"])
def test_a_host_and_its_api(host: str) -> None:
    assert host_of(api_of(host)) == host


def test_the_new_name_of_a_conversation_that_moved() -> None:
    assert conversation_at("https://github.com/new/name/pull/7") == ("new/name", 7)
    assert conversation_at("https://github.com/new/name") is None


def test_a_repository_becomes_part_of_a_search() -> None:
    assert repository_of("o/r") == "o/r"
    for text in ("o/r is:closed", "o", 'o/r"', "o/r#5"):
        with pytest.raises(UsageError):
            repository_of(text)


def test_each_token_is_for_its_own_hosts() -> None:
    tokens = {"GH_TOKEN": "a", "GITHUB_TOKEN": "b", "GH_ENTERPRISE_TOKEN": "c"}

    def sent(api: str, *, trusted: bool = True, **environ: str) -> str | None:
        both = tokens | environ
        return token_in(both, variables_for(api, trusted=trusted, environ=both))

    assert sent("https://api.github.com") == "a"
    assert sent("https://api.acme.ghe.com") == "a"
    assert sent(GHES) == "c"
    assert sent(GHES, trusted=False) is None
    assert sent(GHES, trusted=False, GH_HOST="ghe.example.com") == "c"
    del tokens["GH_ENTERPRISE_TOKEN"]
    assert sent(GHES) is None
    assert sent(GHES, GITHUB_ACTIONS="true", GITHUB_API_URL=GHES) == "b"
    assert sent("https://other.example/api/v3", GITHUB_ACTIONS="true", GITHUB_API_URL=GHES) is None


def test_a_pasted_address_of_an_unknown_host_gets_no_token_of_the_environments() -> None:
    pasted = target_of("https://ghe.example.com/o/r/pull/5", asked_api=None)
    assert not pasted.trusted
    told = no_token(pasted, environ={})
    assert told.remedy is not None and "--api-url https://ghe.example.com/api/v3" in told.remedy
    usual = no_token(target_of("o/r#1", asked_api=None), environ={})
    assert usual.remedy is not None and GITHUBS[0] in usual.remedy
