import ssl

import httpx
import pytest

from sparkdiag.tls import verifies


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "HTTP://[::1]:1/v1"])
def test_plain_http_needs_no_certificates(url: str) -> None:
    assert verifies(url) is False


@pytest.mark.parametrize("url", ["https://127.0.0.1", "HTTPS://x", "httpx://x", "127.0.0.1:80", ""])
def test_everything_else_is_checked(url: str) -> None:
    assert verifies(url) is True


def test_https_keeps_what_httpx_does_by_default() -> None:
    assert httpx.create_ssl_context(verify=verifies("https://x")).verify_mode == ssl.CERT_REQUIRED
