"""What a run will take, said before it starts. Pure."""

from sparkdiag.reporting.phrases import seconds


def estimate(
    *, environment_s: float | None, ready_s: float, verdict_within_s: float, prompt_tokens: int, dcp: int
) -> str:
    """One line: ``environment 15.0 s, server start about 57.0 s, verdict within 60.0 s of sending …``.

    ``environment_s`` is None when the environment is there already.
    """
    steps = [f"environment about {seconds(environment_s)}"] if environment_s is not None else []
    steps.append(f"server start about {seconds(ready_s)}")
    steps.append(f"verdict within {seconds(verdict_within_s)} of sending {prompt_tokens} tokens at DCP {dcp}")
    total_s = (environment_s or 0) + ready_s + verdict_within_s
    return f"{', '.join(steps)}; about {seconds(total_s)} in all"
