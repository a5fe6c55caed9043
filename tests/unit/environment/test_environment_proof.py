"""What proves a revision and a DCP size, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment.dcp_proof import prove_dcp
from sparkdiag.environment.model import Environment
from sparkdiag.environment.proof import compare, prove_revision, sha_in_version
from sparkdiag.evidence.identity import ProcessIdentity, ServerIdentity
from sparkdiag.evidence.processes import ProcessInfo, Ranks
from sparkdiag.evidence.run import FileProof
from sparkdiag.scenario.model import Suspect

FILE = FileProof(module="vllm.indexer", path="/site/vllm/indexer.py", sha256="a" * 64)
ENVIRONMENT = Environment(
    spec="release:0.32.0",
    kind="release",
    key="k",
    python="/py",
    serve_prefix=("/py", "-m", "x"),
    vllm_version="0.32.0",
    package_path="/site/vllm",
    expected_files=(FILE,),
)
PROCESS = ProcessIdentity(pid=1, vllm_version="0.32.0", vllm_path="/site/vllm/__init__.py", files=(FILE,))


def identity(*processes: ProcessIdentity, **more: object) -> ServerIdentity:
    return ServerIdentity.model_validate({"processes": processes, **more})


def changed(**update: object) -> ProcessIdentity:
    return PROCESS.model_copy(update=update)


def test_all_that_matches_is_proof() -> None:
    proved, because = compare(ENVIRONMENT, identity(PROCESS, changed(pid=2, files=()), version_endpoint="0.32.0"))
    assert proved and "vllm.indexer" in because and "2 server process" in because


@pytest.mark.parametrize(
    ("running", "word"),
    [
        (identity(), "no server process told"),
        (identity(PROCESS, changed(vllm_version="0.31.0")), "version 0.31.0 runs"),
        (identity(PROCESS, version_endpoint="0.30.0"), "version 0.30.0 runs"),
        (identity(changed(vllm_version=None)), "told no version"),
        (identity(PROCESS, changed(vllm_path="/other/vllm/__init__.py")), "imported from /other/vllm"),
        (identity(changed(vllm_path="/site/vllm2/__init__.py")), "imported from /site/vllm2"),
        (identity(changed(vllm_path=None)), "no process told where"),
        (identity(PROCESS, changed(files=(FILE.model_copy(update={"sha256": "b" * 64}),))), "differs"),
        (identity(changed(files=())), "no process imported"),
    ],
)
def test_anything_missing_or_different_is_none(running: ServerIdentity, word: str) -> None:
    proved, because = compare(ENVIRONMENT, running)
    assert not proved and word in because


def test_a_lab_over_an_overlay_tells_both_revisions() -> None:
    both = ENVIRONMENT.model_copy(update={"kind": "lab", "revision_sha": "1" * 40, "vllm_sha": "2" * 40})
    proof = prove_revision(both, identity(PROCESS), suspect=Suspect(), repo=None)
    assert (
        proof.proved and proof.sha == "1" * 40 and proof.because.startswith(f"vLLM's own code is commit {'2' * 40}; ")
    )
    alone = both.model_copy(update={"kind": "overlay", "revision_sha": "2" * 40})
    assert "own code" not in prove_revision(alone, identity(PROCESS), suspect=Suspect(), repo=None).because


def test_without_a_file_to_compare_nothing_is_proved() -> None:
    bare = ENVIRONMENT.model_copy(update={"expected_files": ()})
    assert compare(bare, identity(PROCESS)) == (
        False,
        "version and import path match, but this vLLM has none of the scenario's watched files to compare",
    )


def test_without_a_clone_the_suspect_commit_is_unknown() -> None:
    proof = prove_revision(ENVIRONMENT, identity(PROCESS), suspect=Suspect(commit="f8f18ce66b"), repo=None)
    assert proof.proved and proof.contains_suspect_commit == "unknown" and "no clone was named" in proof.because
    assert (proof.version, proof.import_path, proof.files) == ("0.32.0", PROCESS.vllm_path, (FILE,))


@pytest.mark.parametrize(
    ("version", "sha"),
    [
        ("0.9.1.dev12+gf8f18ce66", "f8f18ce66"),
        ("0.9.1.dev12+gf8f18ce66.d20260506", "f8f18ce66"),
        ("0.9.1+precompiled.gf8f18ce66", "f8f18ce66"),
        ("0.32.0", None),
        ("0.32.0+cpu", None),
        ("0.32.0+gxyz", None),
        (None, None),
    ],
)
def test_sha_in_version(version: str | None, sha: str | None) -> None:
    assert sha_in_version(version) == sha


def worker(pid: int, **ranks: int) -> ProcessInfo:
    return ProcessInfo(pid=pid, started_at_s=0, role="worker", ranks=Ranks(**ranks), title="VLLM::Worker")


def probe(*sizes: int | None) -> ServerIdentity:
    return ServerIdentity(processes=tuple(ProcessIdentity(pid=i, dcp_world_size=size) for i, size in enumerate(sizes)))


def test_all_three_witnesses() -> None:
    running = probe(2, 2, None).model_copy(update={"argv": ("x", "--decode-context-parallel-size", "2")})
    proof = prove_dcp(asked=2, processes=(worker(1, tp=0, dcp=0), worker(2, tp=1, dcp=1)), identity=running)
    assert (proof.size, proof.consistent) == (2, True)
    assert proof.witnesses == (
        "probe: dcp_world_size 2 in 2 worker(s)",
        "worker titles: DCP0, DCP1",
        "argv: --decode-context-parallel-size 2",
    )


def test_nobody_spoke() -> None:
    assert prove_dcp(asked=2, processes=(), identity=ServerIdentity()).size is None
    default = prove_dcp(asked=1, processes=(worker(1),), identity=ServerIdentity(argv=("vllm", "serve")))
    assert default.size is None and default.witnesses == ("argv: names no DCP size (vLLM's default is 1)",)


def test_titles_without_a_dcp_part_mean_one() -> None:
    proof = prove_dcp(asked=2, processes=(worker(1, tp=0), worker(2, tp=1)), identity=ServerIdentity())
    assert (proof.asked, proof.size) == (2, 1)


@pytest.mark.parametrize(
    "argv", [("-dcp", "4"), ("--decode-context-parallel-size=4",), ("-dcp=4",), ("-dcp", "2", "-dcp", "4")]
)
def test_argv_forms(argv: tuple[str, ...]) -> None:
    assert prove_dcp(asked=4, processes=(), identity=ServerIdentity(argv=argv)).size == 4


@pytest.mark.parametrize("argv", [("-dcp",), ("-dcp", "two")])
def test_a_flag_without_a_number_says_nothing(argv: tuple[str, ...]) -> None:
    assert prove_dcp(asked=1, processes=(), identity=ServerIdentity(argv=argv)).size is None


def test_the_process_state_beats_the_wish() -> None:
    running = probe(1, 1).model_copy(update={"argv": ("-dcp", "2")})
    proof = prove_dcp(asked=2, processes=(), identity=running)
    assert (proof.size, proof.consistent) == (1, False)


@given(st.lists(st.integers(1, 8), min_size=1, max_size=4))
def test_the_probe_is_consistent_exactly_when_all_agree(sizes: list[int]) -> None:
    assert prove_dcp(asked=1, processes=(), identity=probe(*sizes)).consistent is (len(set(sizes)) == 1)
