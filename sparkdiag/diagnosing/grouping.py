"""Which looks are at the same process: the identity of a pasted process, and its name for people. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.dump import ProcessDump

Key = tuple[object, ...]

_SHORT = {
    "api_server": "APIServer",
    "engine_core": "EngineCore",
    "dp_coordinator": "DPCoordinator",
    "resource_tracker": "resource tracker",
}


def key_of(look: ProcessDump, place: int) -> Key:
    """Equal for looks at one process. By pid (of one host) where it is there, by rank where that tells; a look that
    says neither is at a process of its own, that of ``place``."""
    if look.pid is not None:
        return ("pid", look.host, look.pid)
    if look.role is not None and look.ranks.label:
        return ("rank", look.host, look.role, look.ranks.label)
    return ("place", place)


def by_process(looks: Sequence[ProcessDump]) -> tuple[tuple[ProcessDump, ...], ...]:
    """Looks at the same process together, in order; processes in the order of their first look."""
    found: dict[Key, list[ProcessDump]] = {}
    for place, look in enumerate(looks):
        found.setdefault(key_of(look, place), []).append(look)
    return tuple(tuple(group) for group in found.values())


def over_time(texts: Sequence[Sequence[ProcessDump]]) -> tuple[tuple[ProcessDump, ...], ...]:
    """Looks of several texts at the same processes: by identity, and where that matches nothing (no pids, or those of
    another start) by the place in the text."""
    first = {key_of(look, place) for place, look in enumerate(texts[0])} if texts else set()
    if all(first & {key_of(look, place) for place, look in enumerate(text)} for text in texts[1:]):
        return by_process([look for text in texts for look in text]) if _told_apart(texts) else _by_place(texts)
    return _by_place(texts)


def _told_apart(texts: Sequence[Sequence[ProcessDump]]) -> bool:
    return all(key_of(look, 0)[0] != "place" for text in texts for look in text)


def _by_place(texts: Sequence[Sequence[ProcessDump]]) -> tuple[tuple[ProcessDump, ...], ...]:
    most = max((len(text) for text in texts), default=0)
    return tuple(tuple(text[place] for text in texts if place < len(text)) for place in range(most))


def name_of(look: ProcessDump, place: int) -> str:
    """``Worker_TP0_DCP0``, ``EngineCore_DP1``, ``node-2 Worker_TP0``, ``process 4711``, ``process no. 2``."""
    label = look.ranks.label
    if look.role == "worker":
        name = "_".join(filter(None, ("Worker", label)))
    elif look.role in _SHORT:
        name = "_".join(filter(None, (_SHORT[look.role], label)))
    elif look.pid is not None:
        name = f"process {look.pid}"
    else:
        name = f"process no. {place + 1}"
    return f"{look.host} {name}" if look.host else name


def names_of(groups: Sequence[Sequence[ProcessDump]]) -> tuple[str, ...]:
    """A name a process, each different: where two share one, their pids or places tell them apart."""
    plain = [name_of(group[-1], place) for place, group in enumerate(groups)]
    if len(plain) == 1 and plain[0].endswith("process no. 1"):
        return (plain[0].replace("process no. 1", "the process"),)
    names = []
    for place, (name, group) in enumerate(zip(plain, groups, strict=True)):
        pid = group[-1].pid
        double = plain.count(name) > 1 and not name.endswith(f"process {pid}")
        names.append(f"{name} ({pid if pid is not None else f'no. {place + 1}'})" if double else name)
    return tuple(names)


def same_processes(one: Sequence[ProcessDump], other: Sequence[ProcessDump]) -> bool:
    """Whether two texts show a process in common, by pid: then the second was taken later."""
    pids = {(look.host, look.pid) for look in one if look.pid is not None}
    return any((look.host, look.pid) in pids for look in other)


def same_places(one: Sequence[ProcessDump], other: Sequence[ProcessDump]) -> bool:
    """Whether two texts show the same roles and ranks: then they are of two servers, or of two moments."""
    return {(look.role, look.ranks) for look in one} == {(look.role, look.ranks) for look in other}
