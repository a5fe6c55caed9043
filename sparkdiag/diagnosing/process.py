"""One process: what its looks show, together with what moved between them. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sparkdiag.diagnosing.movement import movement_of
from sparkdiag.diagnosing.signatures import Match, match_look
from sparkdiag.evidence.diagnosis import CANNOT_TELL, Confidence, DiagnosisKind, Movement, ProcessDiagnosis, Reason
from sparkdiag.evidence.dump import ProcessDump

WAITING: frozenset[DiagnosisKind] = frozenset({"idle", "queue-wait", "collective-wait", "ray-wait"})
"""For another process: a victim until shown otherwise."""
NEVER_ALONE: frozenset[DiagnosisKind] = frozenset({"forward", "gpu-wait", "idle", "queue-wait"})
"""Kinds that every healthy server passes through all the time: one look at them says little."""


@dataclass(frozen=True, slots=True)
class Read:
    """A process as far as it can be read by itself."""

    looks: tuple[ProcessDump, ...]
    match: Match
    movement: Movement | None
    agreeing: int
    """Looks that are of the match's kind."""
    found: ProcessDiagnosis

    @property
    def waits(self) -> bool:
        """For somebody else."""
        return self.match.waits or self.match.kind in WAITING


def read_process(looks: Sequence[ProcessDump], *, name: str) -> Read:
    """The process as of its last look that can be told; the other looks say how steady that is."""
    matches = [match_look(look) for look in looks]
    match = _leading(matches)
    movement = movement_of(looks)
    agreeing = sum(other.kind == match.kind for other in matches)
    last = looks[-1]
    found = ProcessDiagnosis(
        pid=last.pid,
        name=name,
        role=last.role,
        rank=last.ranks.label or None,
        kind=match.kind,
        function=match.function,
        path=match.path,
        line=match.line,
        thread=match.thread,
        signature=match.signature,
        confidence=_confidence(match, agreeing=agreeing, looks=looks),
        meaning=match.meaning,
        next_step=match.next_step,
        reference=match.reference,
        healthy=match.healthy,
        movement=movement,
        reasons_for=_for(match, movement, name=name, agreeing=agreeing, looks=len(looks)),
        reasons_against=_against(matches, match, looks, name=name),
    )
    return Read(looks=tuple(looks), match=match, movement=movement, agreeing=agreeing, found=found)


def _leading(matches: Sequence[Match]) -> Match:
    """The kind seen most, of those that say something; of equals the later, in its last look.

    A step that launches, waits and compiles in turn is explained by the work that was seen in a third of its looks, not
    by the waits between (https://github.com/vllm-project/vllm/pull/41834: three looks, one inside the compiler).
    """
    telling = [match for match in matches if match.kind not in CANNOT_TELL] or list(matches)
    counts = Counter(match.kind for match in telling)
    most = max(counts.values())
    leading = next(match for match in reversed(telling) if counts[match.kind] == most)
    if leading.kind not in ("gpu-wait", "forward"):
        return leading
    works = (match for match in reversed(telling) if match.names_work and 3 * counts[match.kind] >= len(telling))
    return next(works, leading)


def _confidence(match: Match, *, agreeing: int, looks: Sequence[ProcessDump]) -> Confidence:
    if match.kind in CANNOT_TELL or not all(thread.whole for thread in looks[-1].threads):
        return "low"
    if len(looks) > 1:
        return (
            "high" if agreeing == len(looks) and match.signature else "medium" if 2 * agreeing > len(looks) else "low"
        )
    return "medium" if match.signature is not None and match.kind not in NEVER_ALONE else "low"


def _for(match: Match, movement: Movement | None, *, name: str, agreeing: int, looks: int) -> tuple[Reason, ...]:
    where = f"{name}, {match.thread}" if match.thread else name
    reasons = [Reason(source=where, text=match.because)] if match.because else []
    if looks > 1:
        reasons.append(Reason(source=name, text=f"{match.kind} in {agreeing} of {looks} looks"))
    if movement is not None:
        reasons.append(Reason(source=name, text=movement.text))
        reasons += [Reason(source=name, text=loop.words) for loop in movement.loops]
    return tuple(reasons)


def _against(matches: Sequence[Match], match: Match, looks: Sequence[ProcessDump], *, name: str) -> tuple[Reason, ...]:
    reasons = [Reason(source=name, text=text) for text in match.others]
    other = Counter(one.kind for one in matches if one.kind != match.kind)
    reasons += [Reason(source=name, text=f"{kind} in {times} of {len(looks)} looks") for kind, times in other.items()]
    if match.healthy is None and match.kind in NEVER_ALONE:
        reasons.append(Reason(source=name, text=f"{match.kind} is seen in healthy servers too"))
    return tuple(reasons)
