"""The real command over a small clone and over the lab's own history: what it says, prints and leaves."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt

from sparkdiag.cli.app import main
from sparkdiag.evidence.route import Executed, ExecutedCall, Route, RouteConfig, RouteHistory, RouteMatrix
from sparkdiag.routing.source.source_tree import SourceTree
from tests.integration.overlay_case import git
from tests.integration.route_clone_case import ENTRY, RouteClone

pytestmark = pytest.mark.integration


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


class Command:
    """``sparkdiag route`` in this process, through the console script's own entry point."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ended:
        self._monkeypatch.setattr("sys.argv", ["sparkdiag", "route", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capsys.readouterr()
        return Ended(int(ended.value.code or 0), said.out, said.err)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> RouteClone:
    return RouteClone(tmp_path_factory.mktemp("clone") / "vllm")


@pytest.fixture
def route(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> Command:
    monkeypatch.setenv("SPARKDIAG_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("SPARKDIAG_CONFIG", str(tmp_path_factory.getbasetemp() / "nothing.toml"))
    return Command(monkeypatch, capsys)


def test_the_tree_ends_in_the_stall_path(route: Command, clone: RouteClone) -> None:
    ended = route("--repo", str(clone.path), "--rev", "fused", "--dcp", "2", "--arch", "sm121")
    assert ended.code == 0, ended
    assert ended.err.splitlines() == [f"reading the clone {clone.path}; scenario sm12x-mqa-prefill (no --scenario)"]
    lines = ended.out.splitlines()
    assert lines[0].startswith(f'sparse_attn_indexer at {clone.shas["fused"][:10]} "\\x1b[2JRoute it to a fused path')
    (guard,) = [line for line in lines if "dcp_world_size <= 1" in line]
    number = (
        (clone.path / ENTRY)
        .read_text()
        .splitlines()
        .index("    if dcp_world_size <= 1 and fp8_fp4_mqa_topk_indices(q, weights):")
    )
    assert guard.split() == [f"sparse_attn_indexer.py:{number + 1}", "dcp_world_size", "<=", "1", "False", "--dcp", "2"]
    stall = next(line for line in lines if "STALL PATH (scenario sm12x-mqa-prefill)" in line)
    assert "-> " in stall and "_fp8_mqa_logits_torch" in stall
    assert lines[-2:] == ["Reaches _fp8_mqa_logits_torch (STALL PATH).", "exact: one kernel, whatever is unknown"]
    assert clone.git("status", "--porcelain") == ""


def test_the_document_is_a_route_and_nothing_else_is_on_stdout(route: Command, clone: RouteClone) -> None:
    ended = route("--repo", str(clone.path), "--rev", "gated", "--arch", "sm121", "--json")
    found = Route.model_validate(ended.document)
    assert (found.revision, found.config.dcp, found.config.arch) == (clone.shas["gated"], 2, "sm121")
    assert [(one.function, one.when) for one in found.reached] == [("_fp8_mqa_logits_torch", ())]
    assert found.exact and ended.document["stall_path"] == "true"
    assert {guard.source for guard in found.guards} >= {"clean_logits"}
    assert found.config.prompt_tokens == 450_560


def test_a_page_to_paste(route: Command, clone: RouteClone) -> None:
    page = route("--repo", str(clone.path), "--rev", "fused", "--arch", "sm121", "--format", "md").out
    assert page.startswith("## sparkdiag route: `sparse_attn_indexer` at `")
    assert "`\\x1b[2JRoute it to a fused path @octocat (#4711)`" in page
    tags = {token.content.strip() for token in MarkdownIt("gfm-like").parse(page) if token.type == "html_block"}
    assert all(tag.startswith(("<details>\n<summary>", "</details>")) for tag in tags), tags


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--rev", "fused", "--dcp", "2", "--arch", "sm121"), 1),
        (("--rev", "fused", "--dcp", "1", "--arch", "sm121"), 0),
        (("--rev", "fused", "--dcp", "2", "--arch", "sm90"), 0),
        (("--rev", "fused", "--dcp", "unknown", "--arch", "sm121"), 3),
        (("--matrix", "--rev", "fused,fixed", "--dcp", "1,2", "--arch", "sm121"), 1),
        (("--matrix", "--rev", "fused,fixed", "--dcp", "unknown,1", "--arch", "sm121"), 3),
        (("--matrix", "--rev", "fixed", "--dcp", "1,2", "--arch", "sm121"), 0),
        (("--matrix", "--rev", "fixed,broken", "--dcp", "1,2", "--arch", "sm121"), 3),
    ],
)
def test_a_predicted_stall_fails_where_that_is_asked(
    route: Command, clone: RouteClone, options: tuple[str, ...], code: int
) -> None:
    assert route("--repo", str(clone.path), "--fail-on-stall", *options).code == code
    assert route("--repo", str(clone.path), *options).code == 0


def test_what_stays_unknown_is_followed_both_ways(route: Command, clone: RouteClone) -> None:
    ended = route("--repo", str(clone.path), "--rev", "fused", "--dcp", "unknown", "--arch", "sm121")
    assert "_fp8_mqa_logits_topk_triton" in ended.out and "_fp8_mqa_logits_torch, STALL PATH" in ended.out
    assert ended.out.count("  when  ") == 2
    assert ended.out.splitlines()[-1] == "not exact: 2 kernels, by what is unknown"


def test_the_matrix_narrows_the_claim_and_answers_beside_revisions_that_cannot(
    route: Command, clone: RouteClone
) -> None:
    asked = ("--matrix", "--dcp", "1,2", "--arch", "sm90,sm120,sm121", "--rev", "fused,start,broken,gone")
    ended = route("--repo", str(clone.path), *asked)
    assert ended.code == 0, ended
    lines = ended.out.splitlines()
    assert "2    sm121  STALL PATH  _fp8_mqa_logits_torch" in " | ".join(lines)
    said = " ".join(" ".join(lines).split())
    assert (
        "In the 6 cells asked the stall path is reached only when: dcp > 1, arch sm120 or sm121 "
        "(in all 2 of these cells). 3 revisions asked have no answer."
    ) in said
    assert [line.split()[0] for line in lines if "no answer:" in line] == ["gone", "start", "broken"]
    found = RouteMatrix.model_validate(route("--repo", str(clone.path), *asked, "--json").document)
    assert len(found.cells) == 6
    page = route("--repo", str(clone.path), *asked, "--format", "md").out
    rows = [token for token in MarkdownIt("gfm-like").parse(page) if token.type == "tr_open"]
    assert len(rows) == 7
    assert "\x1b" not in page + ended.out


def test_one_commit_by_two_names_is_read_once(route: Command, clone: RouteClone) -> None:
    ended = route("--repo", str(clone.path), "--matrix", "--dcp", "1,2", "--rev", "main,fixed", "--json")
    assert "fixed is the same commit as main; it is read once" in ended.err
    assert len(ended.document["cells"]) == 2


def test_a_history_lists_where_the_route_changes(route: Command, clone: RouteClone) -> None:
    asked = ("--repo", str(clone.path), "--history", "gated..main", "--arch", "sm121")
    found = RouteHistory.model_validate(route(*asked, "--dcp", "1", "--json").document)
    assert [(change.sha, change.after) for change in found.changes] == [
        (clone.shas["fused"], ("_fp8_mqa_logits_topk_triton",))
    ]
    assert [problem.revision for problem in found.problems] == [clone.shas["broken"]]
    text = route(*asked).out
    assert clone.shas["fixed"][:10] in text
    assert "  before  _fp8_mqa_logits_torch (STALL PATH)\n  after   fp8_mqa_logits_triton\n" in text
    assert text.splitlines()[-1].startswith("1 change among 3 commits from ")
    same = route("--repo", str(clone.path), "--history", "gated..fused", "--arch", "sm90")
    assert same.out.splitlines()[-1].startswith("no change among 1 commit from ")
    assert f"sparkdiag route --repo {clone.path} --rev {clone.shas['fused'][:10]}" in same.err
    page = route(*asked, "--format", "md").out
    assert page.startswith("## sparkdiag route: 1 change of the route")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--rev", "gone"), 2, "error: --rev 'gone' is no commit of"),
        (("--rev", "start"), 3, "error: "),
        (("--rev", "broken"), 3, "error: "),
        (("--matrix", "--rev", "start,broken,gone"), 3, ""),
        (("--history", "gated..gone"), 2, "error: --history 'gone' is no commit of"),
        (("--history", "main..gated"), 2, "error: --history 'main..gated': nothing lies between"),
    ],
)
def test_what_has_no_answer_is_one_clear_line(
    route: Command, clone: RouteClone, options: tuple[str, ...], code: int, message: str
) -> None:
    ended = route("--repo", str(clone.path), *options)
    assert ended.code == code, ended
    assert message in ended.err
    assert "Traceback" not in ended.err
    as_json = route("--repo", str(clone.path), *options, "--json")
    assert as_json.code == code
    assert as_json.document["schema"] == 1


def test_a_folder_that_is_no_clone_is_refused_with_what_to_type(route: Command, tmp_path: Path) -> None:
    for repo in (tmp_path, tmp_path / "nothing"):
        ended = route("--repo", str(repo))
        assert ended.code == 2
        assert "error: --repo" in ended.err and "next: " in ended.err


def test_a_shallow_clone_and_a_bare_one_are_read(route: Command, clone: RouteClone, tmp_path: Path) -> None:
    shallow, bare = tmp_path / "shallow", tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{clone.path}", str(shallow))
    git(tmp_path, "clone", "-q", "--bare", str(clone.path), str(bare))
    for folder in (shallow, bare):
        ended = route("--repo", str(folder), "--dcp", "1", "--arch", "sm121", "--json")
        assert [one["function"] for one in ended.document["reached"]] == ["_fp8_mqa_logits_topk_triton"]
    ended = route("--repo", str(shallow), "--rev", "fused~1")
    assert (ended.code, "a shallow clone" in ended.err, "fetch --unshallow" in ended.err) == (2, True, True)


def test_without_a_clone_the_labs_own_history_is_read(route: Command) -> None:
    ended = route()
    assert ended.code == 0, ended
    assert ended.err == "no --repo: reading the lab's own history; scenario lab (no --scenario)\n"
    assert "Reaches _fp8_mqa_logits_torch (STALL PATH).\nexact: " in ended.out
    matrix = route("--matrix", "--dcp", "1,2", "--rev", "fused,incident,gate-dropped", "--json").document
    assert [cell["stall"] for cell in matrix["cells"]] == ["false", "true", "false", "true", "false", "false"]
    history = route("--history", "fused..main", "--json").document
    assert [change["after"] for change in history["changes"]] == [["fp8_mqa_logits_triton"]]
    wrong = route("--rev", "nosuch")
    assert (wrong.code, "gate-dropped" in wrong.err) == (2, True)


def test_a_name_that_is_set_and_stands_nowhere_is_told(route: Command, clone: RouteClone) -> None:
    asked = ("--repo", str(clone.path), "--rev", "gated", "--arch", "sm121", "--set")
    assert "no file on the way holds clean_logit, so" in route(*asked, "clean_logit=True").err
    ended = route(*asked, "clean_logits=True")
    assert len(ended.err.splitlines()) == 1
    assert "Reaches fp8_mqa_logits_triton." in ended.out
    assert "--set clean_logits=True" in ended.out


def test_a_scenario_about_vllm_needs_a_clone(route: Command) -> None:
    ended = route("--scenario", "sm12x-mqa-prefill")
    assert ended.code == 2
    assert "next: sparkdiag route --repo path/to/vllm --scenario sm12x-mqa-prefill" in ended.err


def test_the_clone_of_the_config_file_is_read(
    route: Command, clone: RouteClone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'repo = "{clone.path}"\n')
    monkeypatch.setenv("SPARKDIAG_CONFIG", str(config))
    ended = route("--json")
    assert "from your config file" in ended.err
    assert ended.document["revision"] == clone.shas["fixed"]
    assert "the lab's own history" in route("--scenario", "lab").err


def test_what_the_dispatch_really_reached_stands_beside_the_answer(
    route: Command, clone: RouteClone, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[str, Path]] = []

    def execute(tree: SourceTree, *, config: RouteConfig, route: Route, python: Path, **_more: Any) -> Executed:
        heard.append((tree.revision, python))
        assert config == route.config
        call = ExecutedCall(function="sparse_attn_indexer", reached=("fp8_mqa_logits_triton",), agrees=False)
        return Executed(revision=tree.revision, python="Python 3.11", calls=(call,))

    monkeypatch.setattr("sparkdiag.cli.route_executed.execute", execute)
    asked = ("--repo", str(clone.path), "--rev", "fused", "--arch", "sm121", "--execute")
    ended = route(*asked, "--env", f"existing:{sys.executable}")
    assert heard == [(clone.shas["fused"], Path(sys.executable))]
    assert f"--execute runs code of {clone.shas['fused'][:10]} in a sandbox" in ended.err
    assert ended.out.splitlines()[-1] == "executed: DISAGREES with what was read: 1 of 1 call"
    document = route(*asked, "--env", f"existing:{sys.executable}", "--json").document
    assert document["executed"]["calls"][0]["agrees"] is False
    assert "**Executed**: DISAGREES" in route(*asked, "--env", f"existing:{sys.executable}", "--format", "md").out


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("overlay:HEAD", "error: the environment overlay:HEAD is a revision of its own"),
        ("existing:/nonexistent", "error: "),
        ("nonsense", "error: "),
    ],
)
def test_an_environment_that_lends_no_torch_is_refused(
    route: Command, clone: RouteClone, env: str, message: str
) -> None:
    ended = route("--repo", str(clone.path), "--rev", "fused", "--execute", "--env", env)
    assert ended.code in (2, 4)
    assert message in ended.err and "next: " in ended.err
    assert ended.out == ""


def test_ctrl_c_ends_it_with_its_own_code(route: Command, clone: RouteClone, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_given: object, **_more: object) -> Route:
        raise KeyboardInterrupt

    monkeypatch.setattr("sparkdiag.cli.route_answer.find_route", interrupted)
    ended = route("--repo", str(clone.path), "--json")
    assert (ended.code, ended.document["error"]["message"]) == (130, "interrupted")
    assert "interrupted; nothing was changed" in ended.err


def test_without_git_it_says_what_is_missing(
    route: Command, clone: RouteClone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for options in (("--repo", str(clone.path)), ()):
        ended = route(*options)
        assert ended.code == 4
        assert "error: git is not installed" in ended.err


def test_lists_and_piped_lines_can_be_searched(route: Command, clone: RouteClone) -> None:
    """Without a terminal each guard names its file and nothing is broken into several lines."""
    out = route("--repo", str(clone.path), "--rev", "fused", "--arch", "sm121").out
    tree = out.split("\n\n")[1].splitlines()
    assert all(".py:" in line for line in tree if not line.lstrip().startswith("->")), tree
    assert all(line.split()[0] == "->" or ".py:" in line.split()[0] for line in tree), tree
