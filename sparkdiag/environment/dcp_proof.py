"""The DCP size that a running server shows, by every witness. Pure, and without git: any server shows it, also one
that somebody else started."""

from sparkdiag.evidence.identity import ServerIdentity
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.run import DcpProof

DCP_FLAGS = ("--decode-context-parallel-size", "-dcp")


def prove_dcp(*, asked: int, processes: tuple[ProcessInfo, ...], identity: ServerIdentity) -> DcpProof:
    """The DCP size by every witness: worker titles, the probe in the workers, the server's argv. Pure.

    ``size`` is None when nobody spoke. Where witnesses disagree, ``consistent`` is False and the size is that of the
    first to be believed: the probe (the process's own state), then the titles, then argv (a wish, no state).
    """
    spoken = [
        found for found in (_dcp_by_probe(identity), _dcp_by_titles(processes), _dcp_by_argv(identity.argv)) if found
    ]
    sizes = [size for found, _ in spoken for size in found]
    return DcpProof(
        asked=asked,
        size=sizes[0] if sizes else None,
        witnesses=tuple(text for _, text in spoken),
        consistent=len(set(sizes)) <= 1,
    )


Witness = tuple[tuple[int, ...], str]
"""The sizes it tells (several where its processes disagree, none where it only leaves the default), and its words."""


def _dcp_by_probe(identity: ServerIdentity) -> Witness | None:
    told = [process.dcp_world_size for process in identity.processes if process.dcp_world_size is not None]
    if not told:
        return None
    sizes = tuple(sorted(set(told)))
    words = ", ".join(f"dcp_world_size {size} in {told.count(size)} worker(s)" for size in sizes)
    return sizes, f"probe: {words}"


def _dcp_by_titles(processes: tuple[ProcessInfo, ...]) -> Witness | None:
    """vLLM titles a worker ``Worker_TP1_DCP1`` and leaves the DCP part out where its size is 1."""
    workers = [process for process in processes if process.role == "worker"]
    ranked = [worker for worker in workers if worker.ranks.dcp is not None]
    if ranked:
        names = sorted({f"DCP{worker.ranks.dcp}" for worker in ranked})
        return (max(worker.ranks.dcp or 0 for worker in ranked) + 1,), f"worker titles: {', '.join(names)}"
    plain = sorted({worker.ranks.label for worker in workers if worker.ranks.tp is not None})
    if plain:
        return (1,), f"worker titles: {', '.join(plain)}, without a DCP part (so DCP 1)"
    return None


def _dcp_by_argv(argv: tuple[str, ...]) -> Witness | None:
    if not argv:
        return None
    for index in reversed(range(len(argv))):
        flag, equals, value = argv[index].partition("=")
        if flag.replace("_", "-") not in DCP_FLAGS:
            continue
        value = value if equals else argv[index + 1] if index + 1 < len(argv) else ""
        if value.isdecimal():
            return (int(value),), f"argv: {flag} {value}"
    return (), "argv: names no DCP size (vLLM's default is 1)"
