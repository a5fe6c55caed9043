"""Routes of many revisions of one clone, each found once for the files that it was read from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sparkdiag.errors import EnvironmentFault, NoEntry, RouteError
from sparkdiag.evidence.route import Route, RouteConfig
from sparkdiag.routing.across.portions import Reach, cut, reach, words
from sparkdiag.routing.across.route_change import Condition, condition
from sparkdiag.routing.source.source_tree import Blob, SourceTree
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
    reach: Reach | None = None
    """What of the files it may depend on; None where that cannot be told."""

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
    texts: dict[str, str | None] = field(default_factory=dict)

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
        self.texts[path] = blob.text if blob is not None else None
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
        self._paths: set[str] = set()

    def known(self, sha: str) -> Answer | None:
        """The commit's own answer, if it was asked for before."""
        return self._by_commit.get(sha)

    def paths(self) -> frozenset[str]:
        """Every file that any answer was read from, or looked for."""
        return frozenset(self._paths)

    def at(self, sha: str, *, strict: bool = False) -> Answer:
        """The commit's own answer; lines in it may be another revision's.

        Raises ``EnvironmentFault`` with ``strict`` when git failed.
        """
        answer = self._by_commit.get(sha) or self._same_content(sha)
        if answer is None:
            answer = self.read(sha)
            if isinstance(answer.fault, EnvironmentFault) and strict:
                raise answer.fault
            if not answer.hits:
                self._by_content.setdefault(tuple(answer.reads), {})[tuple(answer.reads.values())] = answer
            self._paths.update(answer.reads)
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
        files = {path: None if text is None else cut(text) for path, text in tree.texts.items()}
        whole = all(file is not None or tree.texts[path] is None for path, file in files.items())
        parts = reach(files, roots=self._roots) if whole else None
        return Answer(tree.reads, tree.hits, route, fault, parts)

    def carried(self, sha: str, before: Answer, *, changed: Mapping[str, str | None]) -> Answer | None:
        """The answer before, where the commit changes only what that does not depend on in ``changed`` files.

        What a search found is taken to be as before. None where that is not certain.
        """
        if before.reach is None or not before.tells:
            return None
        tree = self._revisions.tree(sha)
        for path, oid in changed.items():
            try:
                blob = None if oid is None or before.reads[path] is None else tree.read(path)
            except (RouteError, EnvironmentFault):
                return None
            file = None if blob is None else cut(blob.text)
            if file is None or not before.reach.same_in(path, file):
                return None
        return replace(before, reads={**before.reads, **changed})

    def _same_content(self, sha: str) -> Answer | None:
        for paths, answers in self._by_content.items():
            answer = answers.get(self._revisions.oids(sha, paths))
            if answer is not None:
                return answer
        return None
