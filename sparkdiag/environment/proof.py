"""What the running server showed about itself, compared with what its environment should be. Pure but for git."""

import re
from pathlib import Path

from sparkdiag.environment.clone import Clone, containment
from sparkdiag.environment.model import Environment
from sparkdiag.evidence.identity import ProcessIdentity, ServerIdentity
from sparkdiag.evidence.run import Containment, FileProof, RevisionProof
from sparkdiag.scenario.model import Suspect

VERSION_SHA = re.compile(r"\+(?:[A-Za-z0-9.]*\.)?g([0-9a-f]{7,40})(?:\.|$)")


def sha_in_version(version: str | None) -> str | None:
    """The abbreviated commit in a development build's version: ``0.9.1.dev12+gf8f18ce66`` -> ``f8f18ce66``. Pure."""
    found = VERSION_SHA.search(version or "")
    return found.group(1) if found else None


def prove_revision(
    environment: Environment, identity: ServerIdentity, *, suspect: Suspect, repo: Path | None
) -> RevisionProof:
    """Compare version, import path and file hashes; ask git about the suspect commit.

    Proved means: every process that spoke tells the environment's version and path, at least one watched file was
    read back, and none differs. The lab's commits live in the lab's own clone, whatever ``repo`` says.
    """
    places = [environment.repo] if environment.kind == "lab" else [str(repo) if repo else None, environment.repo]
    clone = next((Clone(Path(place)) for place in places if place is not None), None)
    sha = environment.revision_sha or sha_by_version(environment.vllm_version, clone)
    contains, why = _containment(clone, sha, suspect=suspect)
    proved, because = compare(environment, identity)
    if environment.vllm_sha not in (None, environment.revision_sha):
        because = f"vLLM's own code is commit {environment.vllm_sha}; {because}"
    first = next((process for process in identity.processes if process.vllm_path), None)
    return RevisionProof(
        asked=environment.asked_revision,
        sha=sha,
        version=next(iter(_versions(identity)), None),
        import_path=first.vllm_path if first else None,
        files=_files_read_back(identity),
        proved=proved,
        because=f"{because}; suspect commit: {why}" if suspect.commit else because,
        suspect_commit=suspect.commit,
        contains_suspect_commit=contains,
    )


def sha_by_version(version: str | None, clone: Clone | None) -> str | None:
    """A release is its tag's commit, a development build names its own; both only where the clone knows them."""
    if version is None or clone is None:
        return None
    return clone.resolve(sha_in_version(version) or f"refs/tags/v{version.split('+')[0]}")


def _containment(clone: Clone | None, sha: str | None, *, suspect: Suspect) -> tuple[Containment, str]:
    commits = (suspect.commit, *suspect.twins) if suspect.commit else suspect.twins
    if clone is None:
        return "unknown", "no clone was named to look in (--repo PATH)"
    return containment(clone, sha, commits=commits)


def compare(environment: Environment, identity: ServerIdentity) -> tuple[bool, str]:
    """Whether the running server is the environment, and what was compared or what differs. Pure."""
    if not identity.processes:
        return False, "no server process told what it runs (the probe was off or never wrote)"
    problems = [
        *_version_problems(environment, identity),
        *_path_problems(environment, identity.processes),
        *_file_problems(environment, identity.processes),
    ]
    if problems:
        return False, "; ".join(problems)
    read_back = {file.module for process in identity.processes for file in process.files}
    matched = sorted(file.module for file in environment.expected_files if file.module in read_back)
    if not environment.expected_files:
        return False, "version and import path match, but this vLLM has none of the scenario's watched files to compare"
    if not matched:
        return False, "version and import path match, but no process imported any of the scenario's watched files"
    return True, (
        f"version {environment.vllm_version or 'unknown'}, import path and SHA-256 of {', '.join(matched)} "
        f"read back from {len(identity.processes)} server process(es) match the environment"
    )


def _versions(identity: ServerIdentity) -> tuple[str, ...]:
    """Every version told, the processes' first."""
    told = [process.vllm_version for process in identity.processes]
    return tuple(dict.fromkeys(filter(None, (*told, identity.version_endpoint))))


def _version_problems(environment: Environment, identity: ServerIdentity) -> list[str]:
    versions = _versions(identity)
    expected = environment.vllm_version
    if not versions:
        return ["the running server told no version"]
    if expected is None:
        return []
    return [f"version {version} runs, {expected} was expected" for version in versions if version != expected]


def _path_problems(environment: Environment, processes: tuple[ProcessIdentity, ...]) -> list[str]:
    told = tuple(dict.fromkeys(process.vllm_path for process in processes if process.vllm_path))
    if not told:
        return ["no process told where it imported vllm from"]
    if environment.package_path is None:
        return []
    expected = Path(environment.package_path)
    wrong = [path for path in told if expected not in Path(path).parents]
    return [f"vllm was imported from {path}, not from {expected}" for path in wrong]


def _file_problems(environment: Environment, processes: tuple[ProcessIdentity, ...]) -> list[str]:
    expected = {file.module: file.sha256 for file in environment.expected_files}
    wrong: dict[str, str] = {}
    for process in processes:
        for file in process.files:
            if file.module in expected and file.sha256 != expected[file.module]:
                wrong[file.module] = file.path
    return [f"{module} differs from what the revision holds ({path})" for module, path in sorted(wrong.items())]


def _files_read_back(identity: ServerIdentity) -> tuple[FileProof, ...]:
    unique = {(file.module, file.sha256): file for process in identity.processes for file in process.files}
    return tuple(unique[key] for key in sorted(unique))
