"""Whether a connection needs certificates. Pure."""


def verifies(base_url: str) -> bool:
    """What httpx's ``verify`` must be for ``base_url``: certificates are checked wherever there are any.

    httpx loads every certificate authority of the machine for each client, also where only plain ``http`` is spoken:
    32 ms of CPU, more than a second of a saturated machine's time in a run's nine clients. False for ``http`` alone.
    """
    return base_url.partition(":")[0].strip().lower() != "http"
