"""What a server that somebody else started says of itself over HTTP, before anything is asked of it. Bounded."""

import httpx

from sparkdiag.harmless.excerpt import one_line
from sparkdiag.tls import verifies

REQUEST_TIMEOUT_S = 3.0
MODELS_TIMEOUT_S = 10.0
_MOST_BYTES = 2**20


def answers(base_url: str) -> bool:
    """Whether anything speaks HTTP there, whatever it says."""
    try:
        httpx.get(f"{base_url}/health", timeout=REQUEST_TIMEOUT_S, verify=verifies(base_url), trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return True


def served_model(base_url: str, *, api_key: str | None) -> str | None:
    """The first name that ``/v1/models`` lists; None where the server does not tell."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        with httpx.stream(
            "GET",
            f"{base_url}/v1/models",
            headers=headers,
            timeout=MODELS_TIMEOUT_S,
            verify=verifies(base_url),
            trust_env=False,
        ) as response:
            body = b""
            for piece in response.iter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    return None
        name = httpx.Response(response.status_code, content=body).json()["data"][0]["id"]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, IndexError, TypeError):
        return None
    return one_line(name, limit=200) if isinstance(name, str) else None
