"""A history of routes is what asking at every single commit would say: over random histories held in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha1

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.errors import EnvironmentFault, NoEntry, RouteError
from sparkdiag.evidence.bisection import Commit
from sparkdiag.evidence.blob import Blob
from sparkdiag.evidence.route import Reached, Route, RouteConfig
from sparkdiag.routing.across.history import route_history
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario

SCENARIO = load_scenario("lab")
CONFIG = RouteConfig(dcp=2)
PATHS = ("entry.py", "moved.py", "a.py", "b.py", "c.py")
ENTRY = "def entry"


def oid_of(text: str) -> str:
    return sha1(text.encode()).hexdigest()


def name_of(number: int) -> str:
    return f"{number:040x}"


@dataclass(frozen=True)
class Difference:
    path: str
    oid: str | None
    added: bool


@dataclass
class MemoryTree:
    revision: str
    files: Mapping[str, str]

    def read(self, path: str) -> Blob | None:
        text = self.files.get(path)
        return None if text is None else Blob(path=path, oid=oid_of(text), text=text)

    def holding(self, text: str) -> tuple[str, ...]:
        return tuple(sorted(path for path, held in self.files.items() if text in held))


@dataclass
class MemoryRange:
    """Commits by number: their parents, and all of their files."""

    lines: Sequence[Sequence[int]]
    states: Sequence[Mapping[str, str]]
    first: int | None = None
    """The old end; None for the whole history."""
    cut_off: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)

    @property
    def old(self) -> str:
        return "" if self.first is None else name_of(self.first)

    @property
    def new(self) -> str:
        return name_of(len(self.lines) - 1)

    @cached_property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        left_out = set() if self.first is None else self._containing(self.first)
        inside = sorted(self._containing(len(self.lines) - 1) - left_out)
        return {name_of(number): tuple(map(name_of, self.lines[number])) for number in inside}

    def _containing(self, number: int) -> set[int]:
        found, waiting = set(), [number]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.lines[one]
        return found

    @property
    def changes(self) -> Mapping[str, Sequence[Difference]]:
        found = {}
        for number, line in enumerate(self.lines):
            now, before = self.states[number], self.states[line[0]] if line else {}
            differing = sorted(path for path in {*now, *before} if now.get(path) != before.get(path))
            found[name_of(number)] = [
                Difference(path, oid_of(now[path]) if path in now else None, path not in before) for path in differing
            ]
        return found

    def tree(self, sha: str) -> SourceTree:
        self.asked.append(sha)
        return MemoryTree(sha, self.states[int(sha, 16)])

    def oids(self, sha: str, paths: Sequence[str]) -> tuple[str | None, ...]:
        files = self.states[int(sha, 16)]
        return tuple(oid_of(files[path]) if path in files else None for path in paths)

    def holds(self, oid: str, text: str) -> bool:
        return any(text in held for files in self.states for held in files.values() if oid_of(held) == oid)

    def described(self, shas: Sequence[str]) -> tuple[Commit, ...]:
        return tuple(Commit(sha=sha, subject=f"commit {int(sha, 16)}") for sha in shas)


def follow(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
    """A small interpreter: ``entry`` returns a name; where the same file, or one it imports from, defines that as a
    function, on it goes; else that is the kernel."""
    blob = tree.read("entry.py")
    if blob is None or ENTRY not in blob.text:
        found = tree.holding(ENTRY)
        if not found:
            raise NoEntry("there is no entry")
        blob = tree.read(found[0])
    assert blob is not None
    entry_path, name = blob.path, "entry"
    for _ in range(6):
        if "((" in blob.text:
            raise RouteError(f"{blob.path} is no Python")
        lines = blob.text.splitlines()
        functions = dict(_pair(line[4:], "(): return ") for line in lines if line.startswith("def "))
        imports = dict(_pair(line[5:], " import ") for line in lines if line.startswith("from "))
        if name in functions:
            name = functions[name]
        elif name in imports.values() and (inner := tree.read(f"{_module(imports, name)}.py")) is not None:
            blob = inner
        else:
            break
    kernel = Reached(function=name, path=blob.path, line=1)
    return Route(
        revision=tree.revision,
        scenario=scenario.name,
        config=config,
        entry="entry",
        entry_path=entry_path,
        entry_line=1,
        reached=(kernel,),
        exact=len(name) > 1,
    )


def _pair(line: str, between: str) -> tuple[str, str]:
    first, _, last = line.partition(between)
    return first, last


def _module(imports: Mapping[str, str], name: str) -> str:
    return next(module for module, imported in imports.items() if imported == name)


NAMES = st.sampled_from(("f", "g", "h", "fast", "slow"))
FUNCTIONS = st.builds(lambda name, to: f"def {name}(): return {to}\n", st.sampled_from(("f", "g", "h")), NAMES)
IMPORTS = st.builds(
    lambda module, name: f"from {module} import {name}\n", st.sampled_from("abc"), st.sampled_from(("f", "g"))
)
OTHERS = st.sampled_from(("X = 1\n", "X = 2\n", "# nothing\n", "if X:\n    f = 2\n", "import f\n"))
LINES = st.lists(st.one_of(FUNCTIONS, IMPORTS, OTHERS), max_size=4).map("".join)
BROKEN = st.just("x = ((\n")
PLAIN = st.one_of(LINES, LINES, LINES, BROKEN)
HOLDING = st.builds(lambda to, rest: f"{ENTRY}(): return {to}\n{rest}", NAMES, LINES)


@st.composite
def histories(draw: st.DrawFn) -> MemoryRange:
    """Up to 14 commits, some of them merges. The entry function comes into ``entry.py`` at any time, into
    ``moved.py`` with that file only."""
    lines: list[list[int]] = []
    states: list[dict[str, str]] = []
    for number in range(draw(st.integers(1, 14))):
        parents = [] if not number else [number - 1 - draw(st.integers(0, min(2, number - 1)))]
        if number > 1 and draw(st.integers(0, 3)) == 0:
            other = draw(st.integers(0, number - 1))
            parents += [other] if other not in parents else []
        files = dict(states[parents[0]]) if parents else {}
        if len(parents) > 1:
            side = states[parents[1]]
            taken = draw(st.sets(st.sampled_from(PATHS)))
            files = {path: text for path, text in files.items() if path not in taken} | {
                path: text for path, text in side.items() if path in taken
            }
        for path in draw(st.lists(st.sampled_from(PATHS), max_size=2, unique=True)):
            if draw(st.integers(0, 4)) == 0:
                files.pop(path, None)
            elif path == "entry.py" or (path == "moved.py" and path not in files):
                files[path] = draw(st.one_of(HOLDING, PLAIN))
            elif path == "moved.py":
                held = ENTRY in files[path]
                files[path] = draw(st.one_of(HOLDING, PLAIN) if held else PLAIN)
            else:
                files[path] = draw(PLAIN)
        lines.append(parents)
        states.append(files)
    first = draw(st.one_of(st.none(), st.integers(0, len(lines) - 1)))
    return MemoryRange(lines, states, None if first == len(lines) - 1 else first)


Said = tuple[str, bool] | str | None


def said_at(span: MemoryRange, sha: str) -> Said:
    """Asked of this one commit: kernel and exactness, ``absent``, or None for no answer."""
    try:
        route = follow(span.tree(sha), scenario=SCENARIO, config=CONFIG)
    except NoEntry:
        return "absent"
    except RouteError:
        return None
    return route.kernels[0], route.exact


def changed_by_asking_everywhere(span: MemoryRange) -> list[str]:
    last: dict[str, Said] = {}
    changed = []
    for sha, parents in span.parents.items():
        before = [last[parent] if parent in last else said_at(span, parent) for parent in parents] or ["absent"]
        now = said_at(span, sha)
        if now is not None and all(one is not None and one != now for one in before):
            changed.append(sha)
        last[sha] = now if now is not None else next((one for one in before if one is not None), None)
        if not parents and now is None:
            last[sha] = None
    return changed


@given(histories())
def test_a_history_is_what_asking_at_every_commit_says(span: MemoryRange) -> None:
    history = route_history(span, scenario=SCENARIO, config=CONFIG, find=follow)
    assert [change.sha for change in history.changes] == changed_by_asking_everywhere(span)
    assert history.commits == len(span.parents)


def straight(*states: Mapping[str, str], first: int | None = None) -> MemoryRange:
    return MemoryRange([[number - 1] if number else [] for number in range(len(states))], states, first)


FAST = {"entry.py": "def entry(): return fast\n"}
SLOW = {"entry.py": "def entry(): return slow\n"}


def test_only_commits_that_touch_what_the_route_was_read_from_are_read() -> None:
    others = [{**FAST, "other.py": f"{number}"} for number in range(40)]
    span = straight(FAST, *others, {**SLOW, "other.py": "39"}, first=0)
    history = route_history(span, scenario=SCENARIO, config=CONFIG, find=follow)
    assert [(change.before, change.after) for change in history.changes] == [(("fast",), ("slow",))]
    assert history.evaluated == 1
    assert set(span.asked) == {name_of(0), name_of(41)}


def test_a_statement_that_the_route_cannot_depend_on_needs_no_new_reading() -> None:
    calls: list[str] = []

    def counting(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
        calls.append(tree.revision)
        return follow(tree, scenario=scenario, config=config)

    states = [{"entry.py": f"def entry(): return fast\ndef beside(): return {number}\n"} for number in range(9)]
    span = straight(*states, first=0)
    history = route_history(span, scenario=SCENARIO, config=CONFIG, find=counting)
    assert not history.changes
    assert len(calls) == 2  # the two ends
    assert history.evaluated == 8


def test_a_commit_that_cannot_be_read_is_told_and_the_others_are_answered() -> None:
    broken = {"entry.py": "def entry(): return fast\nx = ((\n"}
    span = straight(FAST, broken, FAST, SLOW, first=0)
    history = route_history(span, scenario=SCENARIO, config=CONFIG, find=follow)
    assert [change.sha for change in history.changes] == [name_of(3)]
    assert [(problem.revision, problem.message) for problem in history.problems] == [
        (name_of(1), "entry.py is no Python")
    ]


def test_an_entry_that_is_nowhere_is_one_problem_at_the_new_end() -> None:
    history = route_history(straight({}, {"a.py": "1"}, {}), scenario=SCENARIO, config=CONFIG, find=follow)
    assert not history.changes
    assert [(problem.revision, problem.message) for problem in history.problems] == [(name_of(2), "there is no entry")]


def test_an_entry_that_comes_and_goes() -> None:
    history = route_history(straight({}, FAST, {}), scenario=SCENARIO, config=CONFIG, find=follow)
    assert [(change.before, change.after) for change in history.changes] == [((), ("fast",)), (("fast",), ())]
    assert history.changes[0].because == "entry comes in at entry.py:1"
    assert history.changes[1].because == "entry is gone"


def test_a_merge_that_takes_one_side_changes_nothing_and_one_that_joins_both_does() -> None:
    one = {"entry.py": "from a import f\ndef entry(): return f\n", "a.py": "def f(): return fast\n"}
    left, right = {**one, "a.py": "def f(): return slow\n"}, {**one, "b.py": "1"}
    third = {**one, "a.py": "def f(): return third\n", "b.py": "1"}
    for merged, wanted in (({**left, "b.py": "1"}, [name_of(1)]), (third, [name_of(1), name_of(3)])):
        span = MemoryRange([[], [0], [0], [2, 1]], [one, left, right, merged], 0)
        history = route_history(span, scenario=SCENARIO, config=CONFIG, find=follow)
        assert [change.sha for change in history.changes] == wanted


def test_a_function_that_comes_into_an_old_file_and_moves_on_is_found_where_it_came() -> None:
    """Nobody has looked into that file before: it comes into view when the next commit answers otherwise."""
    old = {"moved.py": "X = 1\n"}
    came = {"moved.py": "def entry(): return fast\n"}
    span = straight(old, {**old, "c.py": "1"}, came, {**came, "c.py": "2"}, {**old, **FAST})
    history = route_history(span, scenario=SCENARIO, config=CONFIG, find=follow)
    assert [change.sha for change in history.changes] == [name_of(2)]


def test_where_a_shallow_clone_was_cut_nothing_is_blamed() -> None:
    span = straight(FAST, SLOW)
    span.cut_off = frozenset({name_of(0)})
    history = route_history(span, scenario=SCENARIO, config=CONFIG, find=follow)
    assert [change.sha for change in history.changes] == [name_of(1)]
    assert "shallow" in history.problems[0].message and history.problems[0].remedy


def test_git_that_fails_at_the_new_end_is_the_answer_and_elsewhere_a_problem() -> None:
    def failing(*at: int) -> "Failing":
        return Failing(tuple(map(name_of, at)))

    span = straight(FAST, {**FAST, "entry.py": "# 1\n"}, SLOW, first=0)
    with pytest.raises(EnvironmentFault):
        route_history(span, scenario=SCENARIO, config=CONFIG, find=failing(2))
    history = route_history(span, scenario=SCENARIO, config=CONFIG, find=failing(1))
    assert [change.sha for change in history.changes] == [name_of(2)]
    assert [problem.message for problem in history.problems] == ["git failed"]


@dataclass
class Failing:
    """Git fails at these commits."""

    at: tuple[str, ...]

    def __call__(self, tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
        tree.read("entry.py")
        if tree.revision in self.at:
            raise EnvironmentFault("git failed", remedy="git fsck")
        return follow(tree, scenario=scenario, config=config)


@dataclass
class Steps:
    """What is told about progress."""

    told: list[str] = field(default_factory=list)

    def start(self, task: str, *, total: float | None, unit: str) -> None:
        self.told.append(f"start {total:.0f} {unit}")

    def advance(self, to: float) -> None:
        self.told.append(f"at {to:.0f}")

    def finish(self, note: str = "") -> None:
        self.told.append(note)


def test_progress_is_told() -> None:
    steps = Steps()
    route_history(straight(FAST, SLOW), scenario=SCENARIO, config=CONFIG, find=follow, progress=steps)
    assert steps.told == ["start 2 commits", "at 0", "2 of 2 commits read"]
