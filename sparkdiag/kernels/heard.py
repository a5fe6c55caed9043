"""What the child says, folded into documents. Its texts are made harmless here, before anything keeps them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.kernel_runs import (
    CheckedCall,
    DispatchContract,
    KernelCheck,
    KernelEnvironment,
    PairDifference,
    RevisionUnderTest,
    TimedCall,
)
from sparkdiag.harmless.excerpt import one_line


class Heard:
    """All that was said, typed."""

    def __init__(self, revision: RevisionUnderTest | None) -> None:
        self.environment: KernelEnvironment | None = None
        self.revision = revision
        self.calls: list[CheckedCall] = []
        self.pairs: list[PairDifference] = []
        self.dispatch: DispatchContract | None = None
        self.subjects: dict[str, str] = {}
        self.timed: list[TimedCall] = []

    def hear(self, said: Mapping[str, Any]) -> None:
        """One thing. Raises ``EnvironmentFault`` for what no child of ours says."""
        try:
            self._take(harmless(said))
        except (ValidationError, KeyError, TypeError, AttributeError) as error:
            raise EnvironmentFault(
                "what the kernels' process said cannot be read",
                remedy="does the revision's code write to its own process' files? Try another --rev",
            ) from error

    def _take(self, said: Mapping[str, Any]) -> None:
        if "ready" in said:
            self.environment = KernelEnvironment.model_validate(said["ready"])
        elif "revision" in said and self.revision is not None:
            self.revision = self.revision.model_copy(update={"over": str(said["revision"])})
        elif "dispatch" in said:
            self.dispatch = DispatchContract.model_validate(said["dispatch"])
        elif "checked" in said:
            self.calls.append(CheckedCall.model_validate(said["checked"]))
        elif "pair" in said:
            self.pairs.append(PairDifference.model_validate(said["pair"]))
        elif "subjects" in said:
            self.subjects = {str(one["key"]): str(one["name"]) for one in said["subjects"]}
        elif "timed" in said:
            self.timed.append(TimedCall.model_validate(said["timed"]))

    def checked(self, *, seed: int, ended_early: str | None) -> KernelCheck:
        """The document, when the child has ended. Raises ``EnvironmentFault`` where nothing was checked."""
        if self.environment is None or not any(call.judged and not call.skipped for call in self.calls):
            raise EnvironmentFault(
                "no kernel was checked"
                + (f": {self.calls[0].skipped}" if self.calls and self.calls[0].skipped else ""),
                remedy="sparkdiag kernel check --device cpu",
            )
        return KernelCheck(
            schema=1,
            passed=not failures(self.calls)
            and (self.dispatch is None or self.dispatch.holds or self.dispatch.unknown is not None),
            seed=seed,
            environment=self.environment,
            revision=self.revision,
            calls=tuple(self.calls),
            pairs=tuple(self.pairs),
            dispatch=self.dispatch,
            ended_early=ended_early,
        )


def failures(calls: Sequence[CheckedCall]) -> tuple[CheckedCall, ...]:
    """Calls of judged kernels that are wrong."""
    return tuple(call for call in calls if call.judged and call.problems)


def harmless(said: Any) -> Any:
    """The same with every text as one line that nothing can break out of."""
    if isinstance(said, str):
        return one_line(said, limit=400)
    if isinstance(said, Mapping):
        return {one_line(str(key), limit=80): harmless(value) for key, value in said.items()}
    return [harmless(value) for value in said] if isinstance(said, list) else said
