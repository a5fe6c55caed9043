"""A run, a bisection, a comparison and a diagnosis made public: nothing planted in any field of theirs survives."""

import json
import random
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Bisection, Trial, TrialResult
from sparkdiag.evidence.comparison import Comparison
from sparkdiag.evidence.diagnosis import Diagnosis
from sparkdiag.evidence.redaction import Redactions
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.harmless.doubtful import fingerprint
from sparkdiag.harmless.identities import Identities
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.bisection import render_bisection
from sparkdiag.reporting.bisection_document import bisection_json
from sparkdiag.reporting.comparison.document import comparison_json
from sparkdiag.reporting.comparison.markdown import render_comparison
from sparkdiag.reporting.document import document_json
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reporting.public import public, public_page, public_values
from sparkdiag.reporting.triage_markdown import render_triage
from tests.integration.planted_secrets import MAKERS, Mint
from tests.unit.reporting.planted_values import planted
from tests.unit.reporting.sample_bisections import FOUND
from tests.unit.reporting.sample_runs import COMPLETED, CRASHED, CRAWLING

NOBODY = Identities()
ME = Identities(hosts=frozenset({"gpubox"}), users=frozenset({"alice"}))
MODELS: list[type[Value]] = [StoredRun, Bisection, Comparison, Diagnosis]
KINDS = sorted(MAKERS)


def rendered(value: Value) -> str:
    """Everything that is ever made of ``value``: its document, its page and all that it holds."""
    whole = value.model_dump_json(by_alias=True)
    match value:
        case StoredRun():
            return "\n".join((whole, render_markdown(value), document_json(value)))
        case Bisection():
            return "\n".join((whole, render_bisection(value), bisection_json(value, run_dir=None)))
        case Comparison():
            return "\n".join((whole, render_comparison(value), comparison_json(value)))
        case Diagnosis():
            return "\n".join((whole, render_triage(value)))
        case _:
            raise AssertionError(type(value))


@pytest.mark.parametrize("model", MODELS)
@given(turn=st.integers(min_value=0, max_value=10_000))
@settings(max_examples=12)
def test_no_planted_secret_survives_in_any_field(model: type[Value], turn: int) -> None:
    mint, where = Mint(turn), dict[str, tuple[str, ...]]()

    def secret(place: str) -> str:
        one = mint.of(KINDS[(turn + len(where)) % len(KINDS)])
        where[f"{place}: {one.kind}"] = one.cores
        return one.text

    value = planted(model, secret)
    shown, redactions = public(value, identities=NOBODY)
    made = rendered(shown)
    assert {place: cores for place, cores in where.items() if any(core in made for core in cores)} == {}
    assert redactions.counts["secret"] > 0


NAMES: list[Callable[[int], tuple[str, str]]] = [
    lambda number: (f"/home/user{number}x/env/bin/python", f"user{number}x"),
    lambda number: (rf"C:\Users\user{number}x\env", f"user{number}x"),
    lambda number: (f"user{number}x@hpc{number}.cs.uni-hof.de", f"user{number}x"),
    lambda number: (f"user{number}x@hpc{number}.cs.uni-hof.de", f"hpc{number}"),
    lambda number: (f"http://box{number}:8000/v1", f"box{number}"),
    lambda number: (f"tcp://box{number}.cluster:8000", f"box{number}"),
    lambda number: (f"reach gpu-box-{number}:29500 now", f"gpu-box-{number}"),
    lambda number: (f"lookup box{number}.hpc.internal failed", f"box{number}"),
    lambda number: (f"pod vllm{number}-7d9f8b6c4d-x2x9z", f"vllm{number}"),
    lambda number: (f"on ip-10-{number % 250}-2-3", f"ip-10-{number % 250}-2-3"),
    lambda number: (f"tcp://10.{number % 250}.2.3:4321", f"10.{number % 250}.2.3"),
    lambda number: (f"at fd00::{number:x}:1", f"fd00::{number:x}:1"),
    lambda number: (f"ether 02:42:ac:11:00:{number % 100:02d}", f"ac:11:00:{number % 100:02d}"),
    lambda number: (f"gpubox said {number}", "gpubox"),
    lambda number: (f"by alice, {number}", "alice"),
    lambda number: (f"GPU-1b2c3d4e-0a1b-2c3d-4e5f-{number:012d}", f"{number:012d}"),
    lambda number: (f"https://s3.example.com/m?X-Amz-Signature={number:064x}", f"{number:064x}"),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("turn", range(len(NAMES)))
def test_no_planted_name_survives_in_any_field(model: type[Value], turn: int) -> None:
    where: dict[str, str] = {}

    def name(place: str) -> str:
        text, core = NAMES[(turn + len(where)) % len(NAMES)](1000 + len(where))
        where[f"{place}: {text}"] = core
        return text

    shown, redactions = public(planted(model, name), identities=ME)
    made = rendered(shown)
    assert {place: core for place, core in where.items() if core in made} == {}
    assert len(redactions.counts) >= 3


@pytest.mark.parametrize("model", MODELS)
def test_a_key_of_unknown_shape_is_reported_wherever_it_stands(model: type[Value]) -> None:
    source, keys = random.Random(5), dict[str, str]()

    def key(place: str) -> str:
        keys[place] = "".join(source.choices(string.ascii_letters + string.digits, k=40))
        return f"it was {keys[place]} then"

    value = planted(model, key)
    shown, redactions = public(value, identities=NOBODY)
    made = shown.model_dump_json()
    reported = {one.fingerprint for one in redactions.unclassified}
    assert {place: one for place, one in keys.items() if one in made and fingerprint(one) not in reported} == {}
    assert len(reported) > len(keys) / 2  # the others stand where everything goes
    assert not any(one in redactions.model_dump_json() for one in keys.values())
    accepted = frozenset(reported)
    assert public(value, identities=NOBODY, accepted=accepted)[1].unclassified == ()


def test_it_says_where_a_doubtful_text_stands_and_does_not_show_it() -> None:
    key = "q7ZkV2nX9pLm4RtB8sWc1YdF6hGj3KaE5uQo0TiN"
    record = CRAWLING.record.model_copy(update={"environment": {"notes": [{"said": f"using {key}"}]}})
    shown, redactions = public(CRAWLING.model_copy(update={"record": record}), identities=NOBODY)
    (one,) = redactions.unclassified
    assert (one.where, one.looks) == ("record.environment.notes.said", "q7Zk… (40 characters)")
    assert shown.record.environment["notes"] == [{"said": f"using {key}"}]


@pytest.mark.parametrize("model", MODELS)
@given(turn=st.integers(min_value=0, max_value=10_000))
@settings(max_examples=6)
def test_public_of_public_changes_and_counts_nothing(model: type[Value], turn: int) -> None:
    mint, made = Mint(turn), 0

    def something(place: str) -> str:
        nonlocal made
        made += 1
        number = turn + made
        return mint.of(KINDS[number % len(KINDS)]).text if made % 2 else NAMES[number % len(NAMES)](1000 + made)[0]

    once, _ = public(planted(model, something), identities=ME)
    twice, redactions = public(once, identities=ME)
    assert twice == once
    assert redactions.counts == {}


@pytest.mark.parametrize("stored", [CRAWLING, COMPLETED, CRASHED], ids=["stalled", "completed", "crashed"])
def test_what_tells_of_nobody_stays_byte_for_byte(stored: StoredRun) -> None:
    shown, redactions = public(stored, identities=ME)
    before = stored.model_dump_json().replace("/home/someone/", "~/")
    before = before.replace(json.dumps(stored.run_dir), json.dumps(shown.run_dir))
    assert shown.model_dump_json() == before
    assert set(redactions.counts) <= {"home folder"}
    assert redactions.unclassified == ()


def test_a_bisection_of_nobody_stays_byte_for_byte() -> None:
    shown, redactions = public(FOUND, identities=ME)
    assert shown == FOUND
    assert redactions == Redactions()


def test_of_a_run_folder_only_its_name_is_told() -> None:
    stored = CRAWLING.model_copy(update={"run_dir": "/srv/projects/secret-client/runs/20260526T081502Z-lab-1a2b-dcp2"})
    assert public(stored, identities=NOBODY)[0].run_dir == "20260526T081502Z-lab-1a2b-dcp2"
    shown, _ = public(_bisected("/srv/projects/secret-client/runs/20260526T081502Z-lab-1a2b-dcp2"), identities=NOBODY)
    assert shown.trials[0].result.run_dir == "20260526T081502Z-lab-1a2b-dcp2"
    shown, _ = public(_bisected("trials/20260526T081502Z-lab-1a2b-dcp2"), identities=NOBODY)
    assert shown.trials[0].result.run_dir == "trials/20260526T081502Z-lab-1a2b-dcp2"


def _bisected(run_dir: str) -> Bisection:
    result = TrialResult(sha="a" * 40, outcome="stalled", run_dir=run_dir)
    return FOUND.model_copy(update={"trials": (Trial(purpose="end", result=result, has="yes", because="it did"),)})


def test_variables_that_are_not_on_the_list_go_and_are_counted() -> None:
    env = {"VLLM_PLUGINS": "lab", "COMPANY_PROJECT": "x", "VLLM_API_KEY": "y"}
    record = CRAWLING.record.model_copy(update={"server_env": env, "scenario": {"server": {"env": env}}})
    shown, redactions = public(CRAWLING.model_copy(update={"record": record}), identities=NOBODY)
    assert shown.record.server_env == {"VLLM_PLUGINS": "lab"}
    assert shown.record.scenario["server"]["env"] == {
        "VLLM_PLUGINS": "lab",
        "COMPANY_PROJECT": "[not recorded]",
        "VLLM_API_KEY": "[not recorded]",
    }
    assert redactions.counts["environment variable"] == 4


def test_a_host_behind_its_option_goes() -> None:
    argv = ("vllm", "serve", "m", "--host", "gpu", "--port", "8000", "--api-key", "x", "--tensor-parallel-size", "2")
    record = CRAWLING.record.model_copy(update={"server_argv": argv})
    shown, redactions = public(CRAWLING.model_copy(update={"record": record}), identities=NOBODY)
    assert shown.record.server_argv == (*argv[:4], "[host-1]", *argv[5:8], "[redacted]", *argv[9:])
    assert redactions.counts["host name"] == 1


def test_what_many_samples_share_they_share_afterwards() -> None:
    frame = Frame(function="wait", filename="/home/carol/x.py", line=3)
    thread = ThreadStack(thread_name="MainThread", frames=(frame,))
    samples = tuple(StackSample(pid=1, started_s=at, ended_s=at + 1, threads=(thread,)) for at in range(20))
    observation = CRAWLING.observation.model_copy(update={"samples": samples})
    shown, _ = public(CRAWLING.model_copy(update={"observation": observation}), identities=NOBODY)
    threads = {id(sample.threads[0]) for sample in shown.observation.samples}
    assert len(threads) == 1
    assert shown.observation.samples[19].threads[0].frames[0].filename == "~/x.py"


def test_the_same_host_is_called_the_same_in_all_values_of_a_report() -> None:
    def said(*texts: str) -> StoredRun:
        return CRAWLING.model_copy(update={"problems": texts})

    made, redactions = public_values(
        said("http://gpu-1:80/", "http://gpu-2:80/"), said("http://gpu-2:80/", "on gpu-1"), identities=NOBODY
    )
    assert [value.problems for value in made if isinstance(value, StoredRun)] == [
        ("http://[host-1]:80/", "http://[host-2]:80/"),
        ("http://[host-2]:80/", "on [host-1]"),
    ]
    assert redactions.counts["host name"] == 3


PAGES = [render_markdown(CRAWLING), render_markdown(COMPLETED), render_bisection(FOUND)]


@pytest.mark.parametrize("page", PAGES, ids=["stalled", "completed", "bisection"])
def test_a_page_of_ours_stays_as_it_is(page: str) -> None:
    assert public_page(page, identities=ME) == (page, Redactions())


def test_a_page_is_looked_at_as_a_whole_before_it_is_posted() -> None:
    page = (
        "| `Worker_TP0` | [why](https://docs.vllm.ai/x) |\n\n```sh\n/home/carol/x --api-key abc\n```\n\n"
        "`http://gpu-7:8000` carol, [2](https://github.com/vllm-project/vllm/pull/51555#issuecomment-1)\n"
        "q7ZkV2nX9pLm4RtB8sWc1YdF6hGj3KaE5uQo0TiN\n"
    )
    made, redactions = public_page(page, identities=NOBODY)
    assert made == page.replace("/home/carol", "~").replace("abc", "[redacted]").replace("gpu-7", "[host-1]").replace(
        "carol", "[user]"
    )
    assert [one.where for one in redactions.unclassified] == ["line 8"]
    assert public_page(made, identities=NOBODY)[1].counts == {}
    accepted = frozenset({redactions.unclassified[0].fingerprint})
    assert public_page(made, identities=NOBODY, accepted=accepted) == (made, Redactions())


def test_words_from_a_fixed_list_and_numbers_are_not_touched() -> None:
    record = RunRecord.model_validate(planted(RunRecord, lambda _: "alice"))
    shown, _ = public(record, identities=Identities(users=frozenset({"finished", "alice", "stalled"})))
    assert shown.status == record.status
    assert shown.verdict is not None
    assert record.verdict is not None
    assert shown.verdict.outcome == record.verdict.outcome
    assert shown.sparkdiag_version == "[user]"


RECORDED = sorted(path.parent for path in (Path(__file__).parents[2] / "recordings").glob("h200-*/*/run.json"))


@pytest.mark.parametrize("folder", RECORDED, ids=[f"{path.parent.name}-{path.name}" for path in RECORDED])
def test_a_real_run_holds_nothing_of_doubt_and_nothing_to_take_out(folder: Path) -> None:
    stored = read_run(folder)
    shown, redactions = public(stored, identities=ME)
    assert redactions == Redactions()
    assert shown == stored.model_copy(update={"run_dir": folder.name})


DUMPS = sorted((Path(__file__).parents[2] / "recordings").glob("dumps/*.txt"))


@pytest.mark.parametrize("dump", DUMPS, ids=[path.stem for path in DUMPS])
def test_real_dumps_hold_nothing_of_doubt(dump: Path) -> None:
    assert public_page(dump.read_text(), identities=NOBODY)[1].unclassified == ()
