"""The watchdog: waits for hours at next to no cost, looks closer at a sign, keeps what a stall shows, and goes on.

Everything is decided by pure parts (``signs``, ``patience``, the judge); this loop only asks, waits, and tells.
"""

from collections.abc import Callable
from typing import Literal

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.diagnosis import Diagnosis
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.reproducing.signals import Terminated
from sparkdiag.watching.closer import CloserLook, CloserLooks
from sparkdiag.watching.keeping import Keeping
from sparkdiag.watching.lookout import Lookout
from sparkdiag.watching.patience import (
    Label,
    Limits,
    Looks,
    Patience,
    after_look,
    as_kept,
    label_of,
    may_look,
    stands,
    while_moving,
    with_sign,
)
from sparkdiag.watching.signs import Sign, looked_at, sign_of, traffic_of
from sparkdiag.watching.vigil_seams import (
    CaptureSink,
    Clock,
    Evidence,
    Judge,
    MetricsSource,
    StackSource,
    VigilEvent,
    VigilSummary,
)

ROUNDS_COMPARED = 3
"""Without metrics: the newest round of stacks is held against so many before it."""

Ended = Literal["goes-on", "interrupted", "terminated", "time-is-up", "captured-enough"]
Tell = Callable[[VigilEvent], None]


def keep_vigil(
    *,
    metrics: MetricsSource | None,
    stacks: StackSource | None,
    clock: Clock,
    judge: Judge,
    sink: CaptureSink,
    patience: Patience | None = None,
    limits: Limits | None = None,
    tell: Tell = lambda _event: None,
) -> VigilSummary:
    """Watch until Ctrl-C, SIGTERM (where ``sigterm_raises`` is in force) or what ``limits`` say; never because of the
    server, the disk or the judge. Needs ``metrics`` or ``stacks``; with metrics alone nothing is called stalled.

    An open capture is closed whatever ends the vigil; what cannot be foreseen is raised after that.
    """
    vigil = _Vigil(
        metrics=metrics,
        stacks=stacks,
        clock=clock,
        judge=judge,
        sink=sink,
        patience=patience or Patience(),
        limits=limits or Limits(),
        tell=tell,
    )
    ended: Ended = "interrupted"
    try:
        ended = vigil.watch()
    except KeyboardInterrupt:
        pass
    except Terminated:
        ended = "terminated"
    finally:
        vigil.close(interrupted=ended in ("interrupted", "terminated"))
    return vigil.summary(ended)


class _Vigil:
    def __init__(
        self,
        *,
        metrics: MetricsSource | None,
        stacks: StackSource | None,
        clock: Clock,
        judge: Judge,
        sink: CaptureSink,
        patience: Patience,
        limits: Limits,
        tell: Tell,
    ) -> None:
        self._clock = clock
        self._stacks = stacks
        self._patience = patience
        self._limits = limits
        self._tell = tell
        self._lookout = Lookout(metrics=metrics, stacks=stacks, clock=clock, patience=patience)
        self._closer = CloserLooks(stacks=stacks, judge=judge, clock=clock, patience=patience)
        self._keeping = Keeping(sink, limits=limits, patience=patience)
        self._began_s = clock.now_s()
        self._looks = {False: Looks(), True: Looks()}
        """By whether the sign is that nobody gets anything while things move: a long healthy prefill shows that one for
        half an hour, which must not make the other one wait."""
        self._looks_taken, self._looks_cpu_s = 0, 0.0
        self._sign: Sign | None = None
        self._last_chance_stall: int | None = None
        self._told_stall: int | None = None
        self._crawls = False
        """The open capture is of a server that moves and gives nothing: it is over with the first token."""
        self._rounds: tuple[tuple[StackSample, ...], ...] = ()
        self._round_due_s = float("-inf")
        self._stack_movements = 0

    def watch(self) -> Ended:
        """Turn after turn, until a limit ends it."""
        while True:
            began_s = self._clock.now_s()
            self._poll()
            self._turn()
            if self._limits.end_after_captures is not None and self._captured >= self._limits.end_after_captures:
                return "captured-enough"
            now_s = self._clock.now_s()
            if self._limits.end_after_s is not None and now_s - self._began_s >= self._limits.end_after_s:
                return "time-is-up"
            self._clock.sleep(max(0.0, min(self._patience.poll_s, began_s + self._patience.poll_s - now_s)))

    def close(self, *, interrupted: bool) -> None:
        """No capture stays half written."""
        self._keeping.end("the vigil ended while nothing moved", interrupted=interrupted)

    def summary(self, ended: Ended) -> VigilSummary:
        """What was seen so far."""
        return VigilSummary(
            watched_s=self._clock.now_s() - self._began_s,
            ended=ended,
            captures=self._keeping.captures,
            looks=self._looks_taken,
            looks_cpu_s=self._looks_cpu_s,
            not_kept=self._keeping.not_kept,
            restarts=self._lookout.seen.restarts,
        )

    @property
    def _captured(self) -> int:
        return len(self._keeping.captures)

    def _stall(self, *, output: bool = False) -> int:
        """The number of the standing moment; ``output``: of the time in which nobody gets anything (below zero, so that
        neither is taken for the other)."""
        seen = self._lookout.seen
        return -1 - seen.outputs if output else seen.movements + self._stack_movements

    def _poll(self) -> None:
        before, stall = self._lookout.seen, self._stall(output=self._crawls)
        self._record(self._lookout.poll())
        now = self._lookout.seen
        if self._stall(output=self._crawls) != stall or now.vanished:
            self._moved("the server is gone" if now.vanished else "things move again")
        if now.vanished and not before.vanished:
            self._say("server", "the server is gone; waiting for it to come back")
        elif now.restarts != before.restarts:
            self._say("server", "the server was started anew")

    def _moved(self, text: str) -> None:
        if self._keeping.is_open:
            self._keeping.end(text)
            self._say("over", text)
        self._crawls = False

    def _record(self, values: tuple[Value, ...]) -> None:
        self._keeping.add(values, at_s=self._clock.now_s())

    def _turn(self) -> None:
        if self._keeping.round_due(at_s=self._clock.now_s()) and self._stacks is not None:
            self._record(self._stacks.look().samples)
        sign = self._told_sign() if self._lookout.tells else self._standing_still()
        if sign is None:
            self._over()
            return
        now_s = self._clock.now_s()
        output = sign.kind == "no-output"
        self._looks[output] = with_sign(self._looks[output], at_s=now_s, patience=self._patience)
        if self._sign is None:
            self._say("sign", sign.text)
        self._sign = sign
        if self._is_to_be_looked_at(sign, now_s):
            self._look(sign)

    def _told_sign(self) -> Sign | None:
        self._rounds = ()
        return sign_of(self._lookout.seen, self._patience)

    def _over(self) -> None:
        """There is no sign now. While the server is silent that says nothing."""
        if self._sign is not None and not self._lookout.seen.failures:
            self._sign = None
            self._say("over", "no sign any more")

    def _is_to_be_looked_at(self, sign: Sign, now_s: float) -> bool:
        output = sign.kind == "no-output"
        stall = self._stall(output=output)
        if self._crawls or self._keeping.has("stalled", stall=stall):
            return False
        if self._lookout.processes == () and self._stacks is not None:
            return False  # nobody is there: a server that is down, or starts
        patience = while_moving(self._patience) if output else self._patience
        if may_look(self._looks[output], at_s=now_s, patience=patience):
            return True
        if output:
            return False  # it moves, so no timeout of the engine's is near
        late = now_s - sign.since_s >= self._patience.evidence_after_s and self._lookout.seen.in_flight
        if not late or self._last_chance_stall == stall or self._keeping.has("unsettled", stall=stall):
            return False
        self._last_chance_stall = stall
        return True

    def _look(self, sign: Sign) -> None:
        """A closer look, and what follows from it."""
        output = sign.kind == "no-output"
        stall = self._stall(output=output)
        earlier = tuple(sample for taken in self._rounds for sample in taken)
        look = self._closer.take(self._lookout, poll=self._poll, earlier=earlier, output=output)
        now_s = self._clock.now_s()
        self._looks[output] = after_look(self._looks[output], ended_s=now_s, cost_s=look.cpu_s)
        self._looks_taken += 1
        self._looks_cpu_s += look.cpu_s
        self._lookout.seen = looked_at(self._lookout.seen)
        if look.outcome != "judged":
            self._say("look", f"{look.problem} while it was looked at closer")
            return
        label = label_of(
            look.diagnosis,
            still_s=0.0 if output else now_s - sign.since_s,
            in_flight=self._lookout.seen.in_flight if self._lookout.tells else None,
            patience=self._patience,
        )
        if label is None or self._keeping.has(label, stall=stall):
            self._say("look", f"not called stalled: {_told(look)}")
            return
        self._keep(label, sign, look, stall=stall)

    def _keep(self, label: Label, sign: Sign, look: CloserLook, *, stall: int) -> None:
        because = f"{sign.text}; {_told(look)}"
        evidence = Evidence(
            label=label,
            because=because,
            began_s=sign.since_s,
            found_s=self._clock.now_s(),
            history=self._lookout.history,
            kv_capacity=self._lookout.kv_capacity,
            processes=self._lookout.processes,
            samples=look.samples,
            diagnosis=as_kept(look.diagnosis, label),
            traffic=traffic_of(self._lookout.seen),
        )
        captured, problem = self._keeping.keep(evidence, stall=stall)
        if captured is None:
            if self._told_stall != stall:
                self._say("not-captured", f"{label}: {because}; not kept: {problem}")
            self._told_stall = stall
            return
        self._crawls = sign.kind == "no-output"
        self._tell(VigilEvent(self._clock.now_s(), "captured", f"{label}: {because}", captured.path))

    def _standing_still(self) -> Sign | None:
        """Without metrics: whether the newest round of stacks and those before it show a stall by themselves."""
        now_s = self._clock.now_s()
        if self._stacks is None or not self._lookout.processes:
            return None
        if now_s < self._round_due_s:
            return self._sign
        if now_s - self._round_due_s > self._patience.gap_s and self._round_due_s > 0:
            self._rounds = ()  # slept meanwhile
        self._round_due_s = now_s + self._patience.tree_every_s
        self._rounds = (*self._rounds[-(ROUNDS_COMPARED - 1) :], self._stacks.look().samples)
        if len(self._rounds) == 1:
            return None
        samples = tuple(sample for taken in self._rounds for sample in taken)
        diagnosis, _problem = self._closer.judged(samples, self._lookout)
        if diagnosis is not None and diagnosis.finding in ("moving", "healthy"):
            self._stack_movements += 1
            self._moved("the stacks move again")
        return _sign_in(diagnosis, since_s=samples[0].started_s)

    def _say(self, kind: Literal["sign", "look", "not-captured", "over", "server"], text: str) -> None:
        self._tell(VigilEvent(self._clock.now_s(), kind, text))


def _sign_in(diagnosis: Diagnosis | None, *, since_s: float) -> Sign | None:
    if diagnosis is None or not (diagnosis.finding == "stalled" or stands(diagnosis)):
        return None
    return Sign("nothing-moves", since_s, f"{diagnosis.process or 'the server'} stands in {diagnosis.function}")


def _told(look: CloserLook) -> str:
    if look.diagnosis is None:
        return look.problem
    found = look.diagnosis
    place = " in ".join(filter(None, (found.process, found.function)))
    return f"{found.finding}, {found.kind}" + (f" ({place})" if place else "")
