"""One look at one process against the signatures: which thread decides, and which signature says most of it. Pure.

Every frame is looked up once; its answer is one integer, a bit for each set of patterns it is in. What a thread shows
is then a handful of integers, and threads that show the same are answered from memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sparkdiag.diagnosing.signature_file import SAYS, Book, Rule, signature_book
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump

NEAR_FRAMES = 8
"""How many innermost frames that say something (no wrappers, no locks and queues of the standard library) are
``near``: a collective or a queue of the engines is at most this deep in its own helpers."""

MAIN = "MainThread"

ENGINE_TITLES = ("VLLM::", "sglang::", "ray::", "vllm", "sglang", "RayWorkerWrapper", "EngineCore")

FRAMES_READ = 400
"""Frames of one thread that are looked at: deeper recursion repeats itself. The frames of a parent that a forked child
keeps below its fork are not looked at either: they are where the parent was when it forked."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One thread, as its frames' sets."""

    thread: DumpThread
    main: bool
    sets: tuple[int, ...]
    """Of every frame, innermost first."""
    native: tuple[bool, ...]
    lineage: int
    """Sets of the frames of its parents, at the moment when they forked."""
    leaf: int
    """Sets of the frames down to the innermost Python frame that is no mere wrapper."""
    near: int
    every: int

    @property
    def telling(self) -> int | None:
        """Index of the innermost frame that is neither native nor plumbing."""
        book = signature_book()
        dull = book.wrapper | book.plumbing
        for index, (sets, native) in enumerate(zip(self.sets, self.native, strict=True)):
            if not native and not sets & dull:
                return index
        return None

    @property
    def rests(self) -> bool:
        """A side thread's own loop that waits for work: a wait of the standard library, one function around it."""
        if self.thread.name == MAIN:
            return False
        book = signature_book()
        telling, waits = 0, False
        for sets, native in zip(self.sets, self.native, strict=True):
            if native or sets & book.wrapper:
                continue
            if sets & book.plumbing:
                waits = waits or not telling
            elif telling or not waits:
                return False
            else:
                telling += 1
        return waits and telling == 1


@dataclass(frozen=True, slots=True)
class Found:
    """What one thread is found to be; ``rule`` None: in the model, at no function that is known."""

    seen: Seen
    rule: Rule | None
    at: int
    """Index of the frame that says most."""
    weight: int

    @property
    def frame(self) -> DumpFrame:
        return self.seen.thread.frames[self.at]


def see_threads(look: ProcessDump) -> tuple[Seen, ...]:
    """The threads that have frames, as sets. Where the paste names no main thread, every thread may be it."""
    shown = [thread for thread in look.threads if thread.frames]
    named = any(thread.name == MAIN for thread in shown)
    return tuple([_see(thread, main=thread.name == MAIN or not named) for thread in shown])


def _see(thread: DumpThread, *, main: bool) -> Seen:
    book = signature_book()
    look_up, dull = book.index.look_up, book.wrapper | book.plumbing
    sets: list[int] = []
    natives: list[bool] = []
    leaf = near = every = 0
    in_leaf, told, lineage = True, 0, 0
    wrapper, fork = book.wrapper, book.fork
    frames = iter(thread.frames[:FRAMES_READ])
    for frame in frames:
        found, native = look_up(frame.function, frame.path, frame.native)
        sets.append(found)
        natives.append(native)
        every |= found
        if in_leaf:
            leaf |= found
            in_leaf = native or bool(found & wrapper)
        if told < NEAR_FRAMES:
            near |= found
            told += not native and not found & dull
        if found & fork:
            break
    for frame in frames:
        lineage |= look_up(frame.function, frame.path, frame.native)[0]
    return Seen(thread, main, tuple(sets), tuple(natives), lineage, leaf, near, every)


@lru_cache(maxsize=4096)
def _fitting(leaf: int, near: int, every: int, role: str | None) -> tuple[Rule, ...]:
    """The rules that this thread's own frames and its process's role fulfil."""
    return tuple(rule for rule in signature_book().rules if _fits(rule, leaf, near, every, role))


def _fits(rule: Rule, leaf: int, near: int, every: int, role: str | None) -> bool:
    if rule.leaf and not leaf & rule.leaf:
        return False
    if rule.near and not near & rule.near:
        return False
    if rule.absent & every:
        return False
    for needed in rule.stack:
        if not every & needed:
            return False
    return not rule.signature.roles or role is None or role in rule.signature.roles


def found_in(seen: Seen, *, role: str | None, book: Book) -> tuple[Found, ...]:
    """Everything that this thread is found to be, what says most first."""
    found = []
    for rule in _fitting(seen.leaf, seen.near, seen.every, role):
        asked = rule.signature.thread
        if (asked == "main" and not seen.main) or (asked == "other" and seen.thread.name == MAIN):
            continue
        if rule.signature.named and seen.thread.name not in rule.signature.named:
            continue
        at = next((index for index, sets in enumerate(seen.sets) if sets & rule.decisive), seen.telling or 0)
        found.append(Found(seen, rule, at, rule.weight))
    in_model = bool(seen.every & book.model) and not seen.every & book.side
    if in_model and (at_model := seen.telling) is not None:
        found.append(Found(seen, None, at_model, SAYS["model"]))
    return tuple(sorted(found, key=_says_most))


def _says_most(found: Found) -> tuple[int, int, int, int]:
    """What names the work before what names a wait; then what stands further in; then what asks for more."""
    if found.rule is None:
        return (-found.weight, found.at, 0, 0)
    return (-found.weight, found.at, -found.rule.conditions, found.rule.order)


def is_helper(seen: Seen, found: Sequence[Found], book: Book) -> bool:
    """Whether a thread says nothing of what the process does: a monitor, a watchdog, a pool's waiting thread."""
    if seen.thread.name == MAIN:
        return False
    if seen.every & book.helper or (seen.rests and not seen.main):
        return True
    return not found and seen.telling is None


def is_titled(look: ProcessDump) -> bool:
    """Whether title or role say that this is a process of an engine, whatever its frames."""
    return look.role not in (None, "other") or (look.title or "").startswith(ENGINE_TITLES)


def decide(look: ProcessDump) -> tuple[Found | None, tuple[Found, ...], tuple[Seen, ...]]:
    """The thread and signature that say most of the process, the runners-up of other threads or kinds, and the threads
    that are no helpers."""
    book = signature_book()
    telling: list[Seen] = []
    ranked: list[Found] = []
    known = is_titled(look)
    for seen in see_threads(look):
        found = found_in(seen, role=look.role, book=book)
        if is_helper(seen, found, book):
            continue
        telling.append(seen)
        ranked.extend(found)
        known = known or bool((seen.every | seen.lineage) & book.evidence)
    if not known:
        return None, (), tuple(telling)
    has_main = any(seen.main for seen in telling)
    ranked = [each for each in ranked if each.seen.main or not has_main or each.weight > SAYS["rest"]]
    ranked.sort(key=_decides)
    return (ranked[0] if ranked else None), tuple(ranked[1:]), tuple(telling)


def _decides(found: Found) -> tuple[object, ...]:
    """Between threads: what says most, the main thread before others, then what no order of threads can change."""
    weight, at, conditions, order = _says_most(found)
    thread = found.seen.thread
    text = tuple((frame.function, frame.path or "", frame.line or 0) for frame in thread.frames[:20])
    return (found.seen.rests, weight, not found.seen.main, at, conditions, order, thread.name or "", text)
