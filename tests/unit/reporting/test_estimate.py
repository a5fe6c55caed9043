from sparkdiag.reporting.estimate import estimate


def test_it_names_every_step_and_the_sum() -> None:
    line = estimate(environment_s=15, ready_s=57, verdict_within_s=60, prompt_tokens=20_000, dcp=2)
    assert line == (
        "environment about 15.0 s, server start about 57.0 s, verdict within 60.0 s of sending 20000 tokens at DCP 2; "
        "about 132 s (2.2 min) in all"
    )


def test_an_environment_that_is_there_costs_nothing() -> None:
    line = estimate(environment_s=None, ready_s=57, verdict_within_s=60, prompt_tokens=64, dcp=1)
    assert "environment" not in line
    assert line.endswith("about 117 s (1.9 min) in all")
