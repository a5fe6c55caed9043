"""How an error looks: one line for thing and cause, its details, one line with the next thing to type."""

import json
import sys

from sparkdiag.errors import ExitCode, SparkdiagError


def printable(text: str) -> str:
    """``text`` with everything that could steer a terminal made visible."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text)


def show_error(error: SparkdiagError, *, as_json: bool) -> None:
    """Print ``error`` on stderr, and as one JSON document on stdout when ``--json`` was asked for."""
    lines = [f"error: {error.message}", *(f"  {detail}" for detail in error.details)]
    if error.remedy:
        lines.append(f"next: {error.remedy}")
    print(printable("\n".join(lines)), file=sys.stderr)
    if as_json:
        print_error(error, exit_code=error.exit_code)


def print_error(error: SparkdiagError, *, exit_code: ExitCode) -> None:
    """The one JSON document of a command that failed."""
    document = {
        "schema": 1,
        "error": {
            "kind": type(error).__name__,
            "message": error.message,
            "details": list(error.details),
            "next": error.remedy,
            "exit_code": int(exit_code),
        },
    }
    print(json.dumps(document, indent=2))
