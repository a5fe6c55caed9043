"""Secrets made up for a test: every kind in every spelling, from a fixed seed, none of them anybody's."""

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

LETTERS = string.ascii_letters + string.digits
URLSAFE = LETTERS + "-_"


@dataclass(frozen=True)
class Planted:
    """One secret as it is planted: what is said, and the part of it that nobody may find."""

    kind: str
    text: str
    cores: tuple[str, ...]

    @property
    def forms(self) -> tuple[bytes, ...]:
        """The ways in which each core would betray it: plain, JSON, URL and base64."""
        found: dict[bytes, None] = {}
        for core in self.cores:
            encoded = base64.b64encode(core.encode()).decode().rstrip("=")
            for form in (core, json.dumps(core)[1:-1], quote(core, safe=""), repr(core)[1:-1], encoded[:-1]):
                found[form.encode()] = None
        return tuple(found)


class Mint:
    """Makes distinct secrets. Two mints of one seed make the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def letters(self, count: int, alphabet: str = LETTERS) -> str:
        """At least one letter and one digit, so that they look like what a machine made."""
        text = "".join(self._random.choices(alphabet, k=count - 2))
        return text + self._random.choice(string.ascii_lowercase) + self._random.choice(string.digits)

    def token(self) -> str:
        """Of a shape that is known wherever it stands, letters, digits and underscores only."""
        return self._random.choice(
            [
                f"hf_{self.letters(34)}",
                f"ghp_{self.letters(36)}",
                f"gho_{self.letters(36)}",
                f"github_pat_{self.letters(22)}_{self.letters(40)}",
                f"AKIA{self.letters(16, string.ascii_uppercase + '234567').upper()}",
                f"gsk_{self.letters(40)}",
                f"npm_{self.letters(36)}",
            ]
        )

    def of(self, kind: str) -> Planted:
        """One of this kind."""
        return MAKERS[kind](self, kind)


Maker = Callable[[Mint, str], Planted]


def _shape(template: str, count: int, alphabet: str = LETTERS) -> Maker:
    def make(mint: Mint, kind: str) -> Planted:
        core = template + mint.letters(count, alphabet)
        return Planted(kind, core, (core,))

    return make


def _named(template: str, *, count: int = 24, alphabet: str = LETTERS) -> Maker:
    """A core without any shape of its own, told by the words around it."""

    def make(mint: Mint, kind: str) -> Planted:
        core = mint.letters(count, alphabet)
        return Planted(kind, template.replace("{}", core), (core,))

    return make


def _several(template: str) -> Maker:
    def make(mint: Mint, kind: str) -> Planted:
        cores = tuple(mint.letters(20) for _ in range(3))
        text = template
        for number, core in enumerate(cores):
            text = text.replace(f"{{{number}}}", core)
        return Planted(kind, text, cores)

    return make


def _aws(mint: Mint, kind: str) -> Planted:
    secret = mint.letters(40, LETTERS + "/+")
    key_id = "AKIA" + mint.letters(16, string.ascii_uppercase + "234567").upper()
    return Planted(kind, f"found credentials {key_id} {secret} in the shared file", (key_id, secret))


def _jwt(mint: Mint, kind: str) -> Planted:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(json.dumps({"sub": mint.letters(12)}).encode()).decode().rstrip("=")
    sign = mint.letters(43, URLSAFE)
    return Planted(kind, f"session {head}.{body}.{sign} accepted", (body, sign))


def _basic(template: str) -> Maker:
    def make(mint: Mint, kind: str) -> Planted:
        password = mint.letters(18)
        encoded = base64.b64encode(f"{mint.letters(6)}:{password}".encode()).decode()
        return Planted(kind, template.replace("{}", encoded), (password, encoded))

    return make


def _pem(name: str, *, prefix: str = "", joint: str = "\n") -> Maker:
    def make(mint: Mint, kind: str) -> Planted:
        lines = tuple(mint.letters(64, LETTERS + "/+") for _ in range(5))
        block = [f"-----BEGIN {name}-----", *lines, f"-----END {name}-----"]
        return Planted(kind, joint.join(prefix + line for line in block), lines)

    return make


def _broken(gap: str) -> Maker:
    """A token with something that nobody sees in its middle."""

    def make(mint: Mint, kind: str) -> Planted:
        one, two = mint.letters(17), mint.letters(17)
        return Planted(kind, f"using hf_{one}{gap}{two} here", (one, two))

    return make


MAKERS: dict[str, Maker] = {
    "hugging-face": _shape("hf_", 34),
    "github-classic": _shape("ghp_", 36),
    "github-server": _shape("ghs_", 36),
    "github-fine": _shape("github_pat_", 60),
    "gitlab": _shape("glpat-", 20, URLSAFE),
    "openai": _shape("sk-", 48),
    "openai-project": _shape("sk-proj-", 60, URLSAFE),
    "anthropic-like": _shape("sk-ant-api03-", 60, URLSAFE),
    "stripe": _shape("sk_live_", 24),
    "nvidia": _shape("nvapi-", 64, URLSAFE),
    "google": _shape("AIza", 35, URLSAFE),
    "google-oauth": _shape("ya29.", 60, URLSAFE),
    "slack": _shape("xoxb-12345678901-", 24),
    "pypi": _shape("pypi-AgEIcHlwaS5vcmc", 60, URLSAFE),
    "npm": _shape("npm_", 36),
    "groq": _shape("gsk_", 40),
    "vault": _shape("hvs.", 24, URLSAFE),
    "aws": _aws,
    "jwt": _jwt,
    "bearer": _named("sending Authorization: Bearer {}", alphabet=URLSAFE),
    "bearer-alone": _named("auth failed for bearer {} at the hub", alphabet=URLSAFE),
    "basic": _basic("Authorization: Basic {}"),
    "basic-alone": _basic("proxy wants basic {} again"),
    "proxy-authorization": _named("Proxy-Authorization: Digest username=u, response={}"),
    "cookie": _named('Cookie: theme="dark"; session={}; other=1'),
    "set-cookie": _named("set-cookie: sid={}; Path=/; HttpOnly"),
    "x-api-key": _named("-H 'x-api-key: {}' -X POST"),
    "private-token": _named("PRIVATE-TOKEN: {}"),
    "raw-headers": _named("[(b'host', b'h'), (b'x-api-key', b'{}')]"),
    "pem": _pem("RSA PRIVATE KEY"),
    "pem-openssh": _pem("OPENSSH PRIVATE KEY"),
    "pem-prefixed": _pem("PRIVATE KEY", prefix="(EngineCore pid=7) "),
    "pem-one-line": _pem("EC PRIVATE KEY", joint="\\n"),
    "url-password": _named("fetching https://robot:{}@index.test/simple/torch/"),
    "url-token": _named("cloning https://{}@git.test/org/repo.git"),
    "url-odd-password": _named("dsn postgres://me:p@ss{}:x@db.test/app"),
    "proxy-without-scheme": _named("proxy is me:{}@proxy.test:3128"),
    "url-encoded-url": _named("next=https%3A%2F%2Fme%3A{}%40host.test%2F"),
    "signed-s3": _named("GET https://b.s3.test/m?X-Amz-Credential=c&X-Amz-Signature={}&X-Amz-Expires=60"),
    "signed-azure": _named("GET https://b.blob.test/m?sv=2024&sig={}%2Fa%3D&se=1"),
    "signed-google": _named("GET https://storage.test/m?X-Goog-Signature={}"),
    "query-token": _named("GET /v1/models?access_token={}&limit=3"),
    "password-equals": _named("login with password={} as root"),
    "password-colon": _named("password: {}"),
    "password-odd": _named("passwd=a,b'c{} end"),
    "api-key": _named("api_key={}, port=8000"),
    "api-key-camel": _named('{"apiKey": "{}", "port": 1}'),
    "client-secret": _named("clientSecret: {}"),
    "weak-token": _named("token: {}"),
    "flag-space": _named("vllm serve m --api-key {} --port 1"),
    "flag-equals": _named("vllm serve m --api-key={} --port 1"),
    "flag-several": _several("vllm serve m --api-key {0} {1} {2} --port 1"),
    "flag-list": _several("['serve', '--api-key', '{0}', '{1}', '{2}', '--port', '1']"),
    "flag-underscore": _named("--hf_token '{}' --seed 0"),
    "json": _named('{"hf_token": "{}", "a": 1}'),
    "json-escaped": _named('{\\"api_key\\": \\"a\\\\n{}\\"}'),
    "python-repr": _several("Namespace(api_key=['{0}', '{1}', '{2}'], port=1)"),
    "python-quote": _named('api_key="it\'s {}", port=1'),
    "toml": _named('secret = "{}"'),
    "toml-lines": _several('api_keys = [\n  "{0}",\n  "{1}",\n  "{2}",\n]'),
    "yaml": _named("db_password: {}"),
    "yaml-list": _several("api_keys:\n  - {0}\n  - {1}\n  - {2}"),
    "yaml-block": _named("client_secret: >-\n  {}"),
    "xml": _named("<password>{}</password>"),
    "url-encoded": _named("body=a%3D1%26api_key%3D{}%26b%3D2"),
    "variable": _named("export MY_HF_TOKEN={}"),
    "variable-key": _named("WANDB_API_KEY={}"),
    "variable-pass": _named("PGPASSWORD='{}' psql"),
    "name-and-value": _named('{"name": "HF_TOKEN", "value": "{}"}'),
    "netrc": _named("machine hub.test login me password {}"),
    "curl-user": _named("curl -u me:{} https://hub.test"),
    "article": _named("password: the {}"),
    "two-words": _named("INFO api key: {}"),
    "no-sign": _named("WANDB_API_KEY {} rejected"),
    "url-slash": _named("postgres://me:p/{}@db.test/app"),
    "wandb-login": _named("wandb login {}", count=40, alphabet="0123456789abcdef"),
    "json-nested": _named('{"credentials": {"user": "{}"}}'),
    "json-tokens": _named('{"tokens": ["{}"]}'),
    "session-id": _named("JSESSIONID={}; Path=/"),
    "digest": _named("Authorization: Digest username=u, response={}"),
    "negotiate": _named("Negotiate {}", count=40),
    "curl-glued": _named("curl -ume:{} https://hub.test"),
    "otel-headers": _named("OTEL_EXPORTER_OTLP_HEADERS=x-team={}"),
    "slack-hook": _named("https://hooks.slack.com/services/T0/B0/{}"),
    "flag-abbreviated": _named("vllm serve m --api-ke {} --port 1"),
    "docker": _shape("dckr_pat_", 27),
    "google-client": _shape("GOCSPX-", 28),
    "coloured": _broken("\x1b[0m"),
    "zero-width": _broken("\u200b"),
}
