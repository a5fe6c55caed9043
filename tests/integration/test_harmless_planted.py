"""More than 500 secrets in everything that sparkdiag reads, real runs over them, and none of them on disk or screen.

What cannot be known, and is therefore not planted: a secret without a telling look and without a telling name beside
it, in a field that is recorded (a password in the title of a scenario). Fields of which that must be feared are not
recorded at all, and there such secrets are planted: values of unknown variables, strings and big integers among a
frame's locals, HTTP headers, labels of metrics. Nor can a secret be known that a line end cuts in two.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkdiag.environment.child import StepFailed, run_step
from sparkdiag.environment.plan import Step
from tests.integration.bad_case import FAKES, BadCase, Ended, until
from tests.integration.planted_secrets import MAKERS, Mint, Planted

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

SERVE = """#!{python}
import sys
sys.path.insert(0, {fakes!r})
import planted
planted.serve(sys.argv[2:])
"""
SITE = """
import os, sys
if os.environ.get("PLANTED_SECRETS"):
    sys.path.insert(0, {fakes!r})
    import planted
    planted.everywhere()
"""
IN_ONE_LINE = sorted(kind for kind in MAKERS if "\n" not in Mint(0).of(kind).text)
IN_A_TOML = sorted(set(IN_ONE_LINE) - {"coloured", "zero-width"})


class Plants:
    """What is planted where. ``places`` holds every secret under the name of its place."""

    def __init__(self, seed: int) -> None:
        self.mint = Mint(seed)
        self.places: dict[str, list[Planted]] = {}

    def _keep(self, place: str, planted: list[Planted]) -> list[Planted]:
        self.places.setdefault(place, []).extend(planted)
        return planted

    def kinds(self, place: str, kinds: list[str]) -> list[str]:
        """One of each kind, as it is said."""
        return [one.text for one in self._keep(place, [self.mint.of(kind) for kind in kinds])]

    def tokens(self, place: str, count: int) -> list[str]:
        found = [self.mint.token() for _ in range(count)]
        self._keep(place, [Planted("token", token, (token,)) for token in found])
        return found

    def plain(self, place: str, count: int = 1, *, alphabet: str = "") -> list[str]:
        """Secrets without any shape."""
        found = [self.mint.letters(20, alphabet) if alphabet else self.mint.letters(20) for _ in range(count)]
        self._keep(place, [Planted("plain", text, (text,)) for text in found])
        return found

    def digits(self, place: str, count: int) -> str:
        number = "4" + "".join(str(self.mint.letters(8, "123456789"))[:6] for _ in range(8))[: count - 1]
        number = "".join(digit if digit.isdigit() else "7" for digit in number)
        self._keep(place, [Planted("integer", number, (number,))])
        return number

    @property
    def all(self) -> list[Planted]:
        return [one for place in self.places.values() for one in place]


def server_side(plants: Plants) -> dict[str, Any]:
    """What the server and every process of its tree do with secrets (tests/fakes/planted.py)."""
    frames = [
        {
            "function": f"run_{plants.tokens('function names', 1)[0]}",
            "file": f"/srv/{plants.tokens('file names', 1)[0]}/model.py",
            "values": [
                *plants.plain("locals", 1),
                *plants.tokens("locals", 1),
                *plants.plain("locals", 4),
                *plants.tokens("named locals", 1),
                *plants.plain("locals", 1),
                plants.digits("integers", 16),
                plants.digits("integers", 40),
                plants.digits("integers", 12),
            ],
        }
        for _ in range(10)
    ]
    return {
        "noise": plants.kinds("noise of an interpreter", IN_ONE_LINE[::4]),
        "thread_name": f"pool {plants.tokens('thread names', 1)[0]}",
        "frames": frames,
        "version": f"0.0.1+{plants.tokens('version', 1)[0]}",
        "log": plants.kinds("server log", sorted(MAKERS)),
        "log_in_pieces": plants.kinds("server log in pieces", sorted(MAKERS)),
        "log_long_lines": plants.kinds("long lines of the log", IN_ONE_LINE[::2]),
        "headers": [*plants.kinds("HTTP headers", IN_ONE_LINE[::2]), *plants.plain("HTTP headers", 12)],
        "labels": [*plants.tokens("metrics labels", 12), *plants.plain("metrics labels", 12)],
        "answer": plants.kinds("answer", ["hugging-face", "api-key", "url-password", "jwt", "password-equals"]),
        "errors": plants.kinds("error bodies", ["nvidia", "flag-equals", "query-token", "bearer-alone", "weak-token"]),
    }


VARIABLES = (
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "NVIDIA_API_KEY", "WANDB_API_KEY",
    "GITHUB_TOKEN", "GH_TOKEN", "PGPASSWORD", "DB_PASS", "MY_SETTING", "LOCAL_THING", "VLLM_S3_ACCESS_KEY",
    "VLLM_SOMETHING", "NCCL_PRIVATE", "TRITON_STRING", "SPARKDIAG_EXTRA", "UV_INDEX_PRIVATE_PASSWORD", "NETRC_LINE",
)  # fmt: skip


def environment_of(plants: Plants) -> dict[str, str]:
    """Variables that sparkdiag inherits, and the server from it."""
    texts = plants.plain("inherited variables", len(VARIABLES))
    proxy = plants.kinds("proxies", ["url-password", "url-password", "url-token"])
    links = [text.split()[-1] for text in proxy]
    return dict(zip(VARIABLES, texts, strict=True)) | {
        "HTTP_PROXY": links[0],
        "https_proxy": links[1],
        "UV_DEFAULT_INDEX": links[2],
    }


def scenario_of(case: BadCase, plants: Plants) -> None:
    values = plants.plain("scenario's variables", 12)
    names = ["OF_MINE", "MY_VALUE", "VLLM_MY_VALUE", *(f"OTHER_{number}" for number in range(9))]
    args = [*option_words(plants, "scenario's arguments"), f"--other-config={plants.tokens('scenario', 1)[0]}"]
    env = "\n".join(f"{name} = {json.dumps(value)}" for name, value in zip(names, values, strict=True))
    case.write_scenario(f"args = {json.dumps(args)}\n[server.env]\n{env}")
    text = case.scenario.read_text(encoding="utf-8")
    said = ". ".join(plants.kinds("scenario's texts", [kind for kind in IN_A_TOML if "flag" not in kind][::2]))
    lines = f"description = {json.dumps(said)}\nhardware = {json.dumps(plants.tokens('scenario', 1)[0])}\n"
    case.scenario.write_text(text.replace("[server]", f"{lines}[server]", 1), encoding="utf-8")


def option_words(plants: Plants, place: str) -> list[str]:
    """Options with secrets, as words of a command line."""
    secret = iter(plants.plain(place, 12))
    link = plants.kinds(place, ["url-password", "signed-s3"])
    return [
        "--hub-token", next(secret),
        f"--ssl-password={next(secret)}",
        "--my-api-keys", next(secret), f"-{next(secret)}", next(secret),
        "--auth", f"--{next(secret)}",
        f"--extra={json.dumps({'auth_token': next(secret), 'nested': {'password': next(secret)}})}",
        "--header", f"Authorization: Bearer {next(secret)}",
        "--cookie", next(secret),
        f"--load={link[0].split()[-1]}",
        f"--source={link[1].split()[-1]}",
        f"--db.secret={next(secret)}",
        "--registry-token", next(secret),
    ]  # fmt: skip


class PlantedCase(BadCase):
    """A bad case whose home, cache and temporary folder are searched afterwards; what holds the plants lies apart."""

    def __init__(self, folder: Path, mode: str, **env: str) -> None:
        self.plants = Plants(seed=7)
        self.temporary = Path(tempfile.mkdtemp(prefix="sdp"))
        super().__init__(folder, mode, TMPDIR=str(self.temporary), **env)
        self.env |= environment_of(self.plants)
        scenario_of(self, self.plants)
        self.after_dashes = option_words(self.plants, "arguments after --")
        given = folder / "given"
        given.mkdir()
        config = given / "config.toml"
        config.write_text(f'model = "org/{self.plants.tokens("config file", 1)[0]}"\n', encoding="utf-8")
        self.clone = self._clone(given / "clone")
        secrets = given / "planted.json"
        secrets.write_text(json.dumps(server_side(self.plants)), encoding="utf-8")
        self.env |= {"PLANTED_SECRETS": str(secrets), "SPARKDIAG_CONFIG": str(config)}

    def _clone(self, path: Path) -> Path:
        (remote,) = self.plants.kinds("git remotes", ["url-password"])
        for words in (["init", "-q", str(path)], ["-C", str(path), "remote", "add", "origin", remote.split()[-1]]):
            subprocess.run(["git", *words], check=True, timeout=60, env={"PATH": os.environ["PATH"]})
        return path

    def venv(self) -> Path:
        venv = super().venv()
        (site,) = (venv / "lib").glob("*/site-packages")
        (site / "sitecustomize.py").write_text(SITE.format(fakes=str(FAKES)), encoding="utf-8")
        (venv / "bin" / "vllm").write_text(
            SERVE.format(python=venv / "bin" / "python", fakes=str(FAKES)), encoding="utf-8"
        )
        return venv

    def arguments(self, *more: str) -> tuple[str, ...]:
        return self.repro_arguments(*more, "--repo", str(self.clone), "--", *self.after_dashes)

    def written(self) -> dict[str, bytes]:
        """Every file that sparkdiag or its server may have left, by name; the names count too."""
        found: dict[str, bytes] = {}
        for top in (self.runs, self.folder / "cache", self.folder / "home", self.temporary):
            for path in top.rglob("*"):
                found[str(path)] = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        return found

    def assert_clean(self, ended: Ended) -> dict[str, bytes]:
        searched = self.written()
        assert any(name.endswith("run.json") for name in searched)
        whole = searched | {
            "stdout": ended.out.encode("utf-8", "surrogateescape"),
            "stderr": ended.err.encode("utf-8", "surrogateescape"),
            "names": "\n".join(searched).encode(),
            "answer": answer_of(self.runs).encode(),
        }
        everything = b"\n".join(whole.values())
        leaked = [
            (place, one.kind, one.text, form.decode(), [name for name, data in whole.items() if form in data])
            for place, planted in self.plants.places.items()
            for one in planted
            for form in one.forms
            if form in everything
        ]
        assert leaked == []
        return searched


def answer_of(runs: Path) -> str:
    """The answers put together again: a secret may have come in pieces."""
    lines = [json.loads(line) for path in runs.glob("*/client.jsonl") for line in path.read_text().splitlines()]
    return "".join(line.get("text", "") for line in lines)


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Any]:
    cases: list[PlantedCase] = []

    def make(mode: str, **env: str) -> PlantedCase:
        cases.append(PlantedCase(tmp_path, mode, **env))
        return cases[-1]

    yield make
    for case in cases:
        shutil.rmtree(case.temporary, ignore_errors=True)


def test_there_are_more_than_500_of_many_kinds_in_many_places(plant: Any) -> None:
    plants = plant("healthy").plants
    cores = [core for one in plants.all for core in one.cores]
    assert len(set(cores)) == len(cores) >= 500
    assert len(plants.all) >= 500
    assert len({one.kind for one in plants.all}) >= 70
    assert len(plants.places) >= 22
    assert min(map(len, cores)) >= 12


@pytest.mark.parametrize(
    ("mode", "end", "outcome"),
    [
        ("healthy", "", "completed"),
        ("crawling", "", "stalled"),
        ("crash-in-request", "", "crashed"),
        ("healthy", "refuse", None),
        ("healthy", "sse-error", None),
    ],
)
def test_no_run_leaves_a_secret(plant: Any, mode: str, end: str, outcome: str | None) -> None:
    case = plant(mode, PLANTED_END=end)
    ended = case.run(*case.arguments("--json"), limit_s=300)
    written = case.assert_clean(ended)
    record = case.record()
    assert record["status"] == "finished", record["error"]
    assert outcome is None or record["verdict"]["outcome"] == outcome
    # The secrets were there to be written: what stands around them is.
    log = next(data for name, data in written.items() if name.endswith("server.log")).decode()
    assert log.count("and goes on") == len(MAKERS)
    assert log.count("[redacted]") > 200
    argv = " ".join(record["server_argv"])
    assert "--my-api-keys [redacted]" in argv and "--registry-token" in argv
    assert record["scenario"]["server"]["env"]["MY_VALUE"] == "[not recorded]"
    if outcome == "completed":
        assert "| api_key=[redacted], port=8000" in answer_of(case.runs)
    if outcome == "stalled":
        stacks = next(data for name, data in written.items() if name.endswith("stacks.jsonl")).decode()
        assert '"function":"run_[redacted]"' in stacks and '"k_cache_prefix":"[redacted]"' in stacks
        assert '{"k_cache_prefix":"[redacted]","k_start":7}' in stacks


def test_a_server_that_dies_while_loading_is_quoted_without_secrets(plant: Any) -> None:
    case = plant("crash-while-loading")
    ended = case.run(*case.arguments())
    assert ended.code == 5
    case.assert_clean(ended)
    assert case.record()["status"] == "failed"


def test_a_run_killed_in_the_middle_leaves_no_secret(plant: Any) -> None:
    case = plant("crawling")
    child = case.start(*case.arguments())
    until(lambda: any(b'"sent"' in path.read_bytes() for path in case.runs.glob("*/client.jsonl")), limit_s=200)
    until(lambda: any(path.stat().st_size > 4_000 for path in case.runs.glob("*/stacks.jsonl")), limit_s=100)
    os.kill(child.pid, signal.SIGKILL)
    out, err = child.communicate(timeout=60)
    case.assert_nothing_left()
    until(lambda: not list(case.temporary.glob("*/probe")), limit_s=30)
    case.assert_clean(Ended(child.returncode, out, err))
    assert case.record()["status"] == "running"


def test_no_message_repeats_a_secret_that_was_typed(plant: Any) -> None:
    case = plant("healthy")
    mint = Mint(11)
    link = mint.of("url-password")
    address, token = link.text.split()[-1], Planted("token", text := mint.token(), (text,))
    config, broken = case.folder / "given" / "wrong.toml", case.folder / "given" / "wrong-scenario.toml"
    config.write_text(f'model = ["{token.text}"]\nrepo = "{address}"\n{token.text} = 1\n', encoding="utf-8")
    broken.write_text(f'name = "{address}"\n{token.text} = "{address}"\n', encoding="utf-8")
    tries = [
        ("repro", "--env", f"existing:{address}"),
        ("repro", "--env", address),
        ("repro", "--scenario", token.text),
        ("repro", "--scenario", str(broken)),
        ("repro", "--repo", address),
        ("repro", "--repo", link.text.split()[-1].replace("://", ":/", 1)),
        ("repro", address),
        (*case.repro_arguments(), "--model", f"/no/{token.text}/model"),
        (*case.repro_arguments(), "--json", "--", "--api-key", token.text),
        (*case.repro_arguments(), "--", f"--served-model-name={address}"),
        ("report", address),
        ("scenario", "show", token.text),
        ("env", "build", address),
    ]
    for words in tries:
        ended = case.run(*words)
        said = (ended.out + ended.err).encode()
        assert ended.code != 0, words
        assert [form for one in (link, token) for form in one.forms if form in said] == [], (words, ended)
    ended = case.run("repro", SPARKDIAG_CONFIG=str(config))
    assert [form for one in (link, token) for form in one.forms if form in (ended.out + ended.err).encode()] == []


def test_what_uv_says_of_its_indexes_is_kept_without_their_passwords(tmp_path: Path) -> None:
    plants = Plants(seed=3)
    said = tmp_path / "said"
    said.write_text("\n".join(plants.kinds("uv", sorted(MAKERS))) + "\n", encoding="utf-8")
    log = tmp_path / "uv.log"
    log.touch()
    code = f"import sys; sys.stdout.write(open({str(said)!r}).read()); sys.exit(3)"
    step = Step(phase="packages", title="packages", argv=(sys.executable, "-c", code), timeout_s=60)
    with pytest.raises(StepFailed) as caught:
        run_step(step, folder=tmp_path, log=log, on_tick=lambda _pid: None)
    kept = log.read_bytes() + "\n".join([caught.value.message, *caught.value.details]).encode()
    assert kept.count(b"[redacted]") > 60
    assert [one.text for one in plants.all for form in one.forms if form in kept] == []
