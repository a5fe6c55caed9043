"""Routes of many revisions of one clone, each found once for the files that it was read from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sparkdiag.errors import EnvironmentFault, NoEntry, RouteError
from sparkdiag.evidence.route import Route, RouteConfig
from sparkdiag.routing.portions import Relevant, cut, relevant, words
from sparkdiag.routing.route_change import Condition, condition
from sparkdiag.routing.source_tree import Blob, SourceTree
from sparkdiag.scenario.model import Scenario


class FindRoute(Protocol):
    """``routing.route.find_route``, or what a test puts in its place."""

    def __call__(self, tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
        """The route of one revision."""
        ...


class Revisions(Protocol):
    """Any commit's files."""

    def tree(self, sha: str) -> SourceTree:
        """The files of a commit."""
        ...

    def oids(self, sha: str, paths: Sequence[str]) -> tuple[str | None, ...]:
        """Ids of these files' contents at a commit, None where there is no such file; in the order of ``paths``."""
        ...


Key = tuple[frozenset[Condition], bool]
"""What makes two routes the same: the kernels, each with its conditions, and whether that is exact."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What a revision answers, and all that the answer was read from."""

    reads: Mapping[str, str | None]
    """By path the id of the content, None for a file that was looked for and is not there."""
    hits: Mapping[str, tuple[str, ...]]
    """By text that was searched for, the files that hold it."""
    route: Route | None = None
    fault: RouteError | EnvironmentFault | None = None
    """Why there is no route."""

    @property
    def tells(self) -> bool:
        """There is a route, or certainly none: the entry function is not there."""
        return self.route is not None or isinstance(self.fault, NoEntry)

    @property
    def key(self) -> Key | None:
        """None without a route."""
        if self.route is None:
            return None
        return frozenset(map(condition, self.route.reached)), self.route.exact


@dataclass
class _Listening:
    """A tree that notes what it is asked."""

    tree: SourceTree
    revisions: Revisions
    reads: dict[str, str | None] = field(default_factory=dict)
    hits: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def revision(self) -> str:
        return self.tree.revision

    def read(self, path: str) -> Blob | None:
        try:
            blob = self.tree.read(path)
        except (RouteError, EnvironmentFault):
            self.reads[path] = self.revisions.oids(self.revision, [path])[0]
            raise
        self.reads[path] = blob.oid if blob is not None else None
        return blob

    def holding(self, text: str) -> tuple[str, ...]:
        self.hits[text] = self.tree.holding(text)
        return self.hits[text]


class Answers:
    """Asks for a route only where no earlier one was read from the same files, or the same portions of them."""

    def __init__(self, revisions: Revisions, *, scenario: Scenario, config: RouteConfig, find: FindRoute) -> None:
        self._revisions = revisions
        self._scenario = scenario
        self._config = config
        self._find = find
        self._roots = words(scenario.model_dump_json() + config.model_dump_json())
        self._by_commit: dict[str, Answer] = {}
        self._by_content: dict[tuple[str, ...], dict[tuple[str | None, ...], Answer]] = {}
        self._by_portions: dict[tuple[str, ...], dict[Relevant, Answer]] = {}
        self._paths: set[str] = set()

    def known(self, sha: str) -> Answer | None:
        """The commit's own answer, if it was asked for before."""
        return self._by_commit.get(sha)

    def paths(self) -> frozenset[str]:
        """Every file that any answer was read from, or looked for."""
        return frozenset(self._paths)

    def at(self, sha: str, *, strict: bool = False) -> Answer:
        """The commit's own answer; lines in it may be another revision's.

        Raises ``EnvironmentFault`` when git failed and nothing was read, or at all with ``strict``.
        """
        answer = self._by_commit.get(sha) or self._same_content(sha) or self._same_portions(sha)
        if answer is None:
            answer = self.read(sha)
            if isinstance(answer.fault, EnvironmentFault) and strict:
                raise answer.fault
            paths = tuple(answer.reads)
            self._by_content.setdefault(paths, {})[tuple(answer.reads.values())] = answer
            portions = self._portions(sha, paths) if answer.tells else None
            if portions is not None:
                self._by_portions.setdefault(paths, {})[portions] = answer
            self._paths.update(paths)
        self._by_commit[sha] = answer
        return answer

    def read(self, sha: str) -> Answer:
        """The commit's answer, read from its own files."""
        tree = _Listening(self._revisions.tree(sha), self._revisions)
        route, fault = None, None
        try:
            route = self._find(tree, scenario=self._scenario, config=self._config)
        except (RouteError, EnvironmentFault) as error:
            fault = error
        return Answer(tree.reads, tree.hits, route, fault)

    def _same_content(self, sha: str) -> Answer | None:
        for paths, answers in self._by_content.items():
            answer = answers.get(self._revisions.oids(sha, paths))
            if answer is not None and self._same_hits(sha, answer):
                return answer
        return None

    def _same_portions(self, sha: str) -> Answer | None:
        for paths, answers in self._by_portions.items():
            portions = self._portions(sha, paths)
            answer = None if portions is None else answers.get(portions)
            if answer is not None and self._same_hits(sha, answer):
                return replace(answer, reads=dict(zip(paths, self._revisions.oids(sha, paths), strict=True)))
        return None

    def _same_hits(self, sha: str, answer: Answer) -> bool:
        tree = self._revisions.tree(sha)
        return all(tree.holding(text) == hits for text, hits in answer.hits.items())

    def _portions(self, sha: str, paths: Sequence[str]) -> Relevant | None:
        """None where a file cannot be had, or cut."""
        tree = self._revisions.tree(sha)
        try:
            blobs = [tree.read(path) for path in paths]
        except (RouteError, EnvironmentFault):
            return None
        files = [None if blob is None else cut(blob.text) for blob in blobs]
        if any(file is None and blob is not None for file, blob in zip(files, blobs, strict=True)):
            return None
        return relevant(files, roots=self._roots)
