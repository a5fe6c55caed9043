"""Which environment and scenario a plain ``sparkdiag repro`` means. Pure: the facts are given."""

from sparkdiag.evidence.base import Value

LAB_ENVIRONMENT = "lab"
LAB_SCENARIO = "lab"
INCIDENT_SCENARIO = "sm12x-mqa-prefill"


class Choice(Value):
    """What will be run and one line that says why."""

    env_spec: str
    scenario: str
    because: str


def choose(*, env: str | None, scenario: str | None, configured_env: str | None, gpus: int) -> Choice:
    """``--env`` wins, then the user's config file, then the embedded lab; the scenario follows the environment."""
    if env is not None:
        spec, because = env, f"environment {env} as asked"
    elif configured_env is not None:
        spec, because = configured_env, f"environment {configured_env} from your config file"
    else:
        seen = "no GPU here" if gpus == 0 else f"{gpus} GPU(s) here but no vLLM environment configured"
        spec, because = LAB_ENVIRONMENT, f"{seen}: using the embedded lab (real vLLM CPU server, tiny model)"
    if scenario is None:
        scenario = LAB_SCENARIO if spec == LAB_ENVIRONMENT else INCIDENT_SCENARIO
    return Choice(env_spec=spec, scenario=scenario, because=because)
