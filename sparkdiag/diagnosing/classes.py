"""Rank equivalence classes: who stands where his peers stand, and who is the odd one out. Pure.

The rules are those of a live run (``judging/process_set.py``): who waits is a victim, of several places the one where
work is done is odd, else the minority, and where nothing tells them apart nobody is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkdiag.diagnosing.rank_words import folded, listed, missing
from sparkdiag.evidence.diagnosis import CANNOT_TELL, DiagnosisKind, ProcessDiagnosis, RankClass

_ONE_PLACE: frozenset[DiagnosisKind] = frozenset({"idle", "queue-wait", "ray-wait", *CANNOT_TELL})
"""Wherever in its spin such a process was caught, it stands in the same place."""

Place = tuple[DiagnosisKind, str | None]


@dataclass(frozen=True, slots=True)
class _Group:
    """Processes of one role in one place."""

    role: str | None
    place: Place
    members: tuple[int, ...]
    waits: bool


def rank_classes(processes: Sequence[ProcessDiagnosis], *, waiting: frozenset[int]) -> tuple[RankClass, ...]:
    """Processes of one role by where they stand; ``waiting``: indices into ``processes`` of those that wait for
    somebody else. The class that decides comes first. One process alone has no class."""
    if len(processes) < 2:
        return ()
    odd = odd_ones(processes, waiting=waiting)
    groups = sorted(_groups(processes, waiting), key=lambda group: _order(group, odd))
    return tuple([_class(group, processes) for group in groups])


def odd_ones(processes: Sequence[ProcessDiagnosis], *, waiting: frozenset[int]) -> frozenset[int]:
    """Indices into ``processes`` of the odd ones out; empty where nothing tells them apart."""
    by_role: dict[str | None, list[_Group]] = {}
    for group in _groups(processes, waiting):
        if group.place[0] not in CANNOT_TELL:
            by_role.setdefault(group.role, []).append(group)
    return frozenset(index for groups in by_role.values() for index in _odd_of_role(groups))


def set_remarks(processes: Sequence[ProcessDiagnosis], *, waiting: frozenset[int]) -> tuple[str, ...]:
    """What the set as a whole says: ranks that were not dumped, ranks that wait in different collectives, everybody in
    the same one."""
    remarks = []
    by_role: dict[str | None, list[_Group]] = {}
    for group in _groups(processes, waiting):
        by_role.setdefault(group.role, []).append(group)
    for groups in by_role.values():
        labels = _labels(processes, [index for group in groups for index in group.members])
        remarks += _collective_remarks(groups, processes)
        gone = missing(labels) if labels else ()
        if gone:
            is_are = "is" if len(gone) == 1 else "are"
            remarks.append(
                f"{folded(gone, peers=[*labels, *gone])} {is_are} not among the dumps: the odd one may be there"
            )
    return tuple(remarks)


def _groups(processes: Sequence[ProcessDiagnosis], waiting: frozenset[int]) -> list[_Group]:
    found: dict[tuple[str | None, Place], list[int]] = {}
    for index, one in enumerate(processes):
        found.setdefault((one.role, _place(one)), []).append(index)
    return [
        _Group(role=role, place=place, members=tuple(members), waits=all(index in waiting for index in members))
        for (role, place), members in found.items()
    ]


def _place(one: ProcessDiagnosis) -> Place:
    return (one.kind, None if one.kind in _ONE_PLACE else _bare(one.function))


def _bare(function: str | None) -> str | None:
    return None if function is None else function.rsplit("::", 1)[-1].rsplit(".", 1)[-1]


def _odd_of_role(groups: Sequence[_Group]) -> tuple[int, ...]:
    if len(groups) < 2:
        return ()
    busy = [group for group in groups if not group.waits]
    if len(busy) == 1:
        return busy[0].members
    most = max(len(group.members) for group in groups)
    if sum(len(group.members) == most for group in groups) > 1:
        return ()
    return tuple([index for group in groups if len(group.members) < most for index in group.members])


def _order(group: _Group, odd: frozenset[int]) -> tuple[bool, bool, bool, bool, int, int]:
    """Odd ones first, then who works, workers before the rest, who waits in a collective before who is idle."""
    return (
        group.members[0] not in odd,
        group.waits or group.place[0] in CANNOT_TELL,
        group.role != "worker",
        group.place[0] != "collective-wait",
        len(group.members),
        group.members[0],
    )


def _class(group: _Group, processes: Sequence[ProcessDiagnosis]) -> RankClass:
    members = [processes[index] for index in group.members]
    functions = {one.function for one in members}
    function = members[0].function if len(functions) == 1 else group.place[1]
    names = _names(group, processes)
    text = f"{names} {_doing(group.place[0], function, many=len(members) > 1)}"
    return RankClass(
        members=tuple([one.name for one in members]),
        kind=group.place[0],
        function=function,
        waits=group.waits,
        text=text,
    )


def _names(group: _Group, processes: Sequence[ProcessDiagnosis]) -> str:
    """By rank where that tells them apart, else by name."""
    peers = _labels(processes, [index for index, one in enumerate(processes) if one.role == group.role])
    if not peers or group.role != "worker":
        return listed([processes[index].name for index in group.members])
    return folded(_labels(processes, group.members), peers=peers)


def _labels(processes: Sequence[ProcessDiagnosis], indices: Sequence[int]) -> list[str]:
    """Rank labels of ``indices``; none where one has no label or two share one (two servers, two hosts)."""
    labels = [label for index in indices if (label := processes[index].rank)]
    return labels if len(labels) == len(indices) and len(set(labels)) == len(labels) else []


_WORDS: dict[DiagnosisKind, tuple[str, str]] = {
    "idle": ("is idle", "are idle"),
    "queue-wait": ("waits for an answer", "wait for an answer"),
    "ray-wait": ("waits for Ray", "wait for Ray"),
    "collective-wait": ("waits", "wait"),
    "gpu-wait": ("waits for the GPU", "wait for the GPU"),
    "jit-compile": ("compiles", "compile"),
    "helper-threads-only": ("shows helper threads alone", "show helper threads alone"),
    "garbled": ("cannot be read", "cannot be read"),
    "not-an-engine": ("is no engine's process", "are no engine's processes"),
}


def _doing(kind: DiagnosisKind, function: str | None, *, many: bool) -> str:
    words = _WORDS.get(kind, ("is", "are"))[many]
    if kind == "idle" or kind in CANNOT_TELL or (function is None and kind in _WORDS):
        return words
    return f"{words} in {_bare(function) or kind}"


def _collective_remarks(groups: Sequence[_Group], processes: Sequence[ProcessDiagnosis]) -> list[str]:
    """Looks at several processes are not of one moment, so two collectives alone are no proof of a mismatch."""
    known = [group for group in groups if group.place[0] not in CANNOT_TELL]
    joined = [group for group in known if group.place[0] == "collective-wait" and group.waits]
    if not joined or len(joined) < len(known) or sum(len(group.members) for group in known) < 2:
        return []
    if len(joined) == 1:
        count = len(joined[0].members)
        return [
            f"all {count} wait in {joined[0].place[1] or 'a collective'}: none of them is the odd one; look for a rank "
            "that was not dumped, a lost message, or what the GPU runs"
        ]
    where = "; ".join(f"{_names(group, processes)} in {group.place[1] or 'a collective'}" for group in joined)
    return [f"they wait in different collectives ({where}): a mismatch, if a second look shows the same"]
