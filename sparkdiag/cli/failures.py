"""How an error looks: one line for thing and cause, its details, one line with the next thing to type."""

import json
import sys

from sparkdiag.errors import ExitCode, SparkdiagError
from sparkdiag.harmless.printable import printable


def show_error(error: SparkdiagError, *, as_json: bool) -> None:
    """Print ``error`` on stderr, and as one JSON document on stdout when ``--json`` was asked for."""
    from sparkdiag.harmless.secrets import redact_text  # compiles its patterns: only when something has failed

    lines = [f"error: {error.message}", *(f"  {detail}" for detail in error.details)]
    if error.remedy:
        lines.append(f"next: {error.remedy}")
    print(printable(redact_text("\n".join(lines)), newlines=True), file=sys.stderr)
    if as_json:
        print_error(error, exit_code=error.exit_code)


def print_error(error: SparkdiagError, *, exit_code: ExitCode) -> None:
    """The one JSON document of a command that failed."""
    from sparkdiag.harmless.secrets import redact_text

    document = {
        "schema": 1,
        "error": {
            "kind": type(error).__name__,
            "message": redact_text(error.message),
            "details": redact_text("\n".join(error.details)).split("\n") if error.details else [],
            "next": redact_text(error.remedy) if error.remedy else error.remedy,
            "exit_code": int(exit_code),
        },
    }
    print(json.dumps(document, indent=2))
