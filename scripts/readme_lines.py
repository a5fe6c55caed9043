"""Print the README's command line of a given name, so that CI runs what a reader types.

A line is named by an HTML comment above its code block: ``<!-- line: tests -->``.
"""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def named_line(text: str, name: str) -> str:
    """The first line of the code block under ``<!-- line: NAME -->``; raises LookupError when there is none."""
    found = re.search(rf"<!-- line: {re.escape(name)} -->\s*```\w*\n(?P<line>[^\n]+)\n", text)
    if found is None:
        raise LookupError(f"README.md has no line named {name!r}")
    return found["line"]


if __name__ == "__main__":
    print(named_line(README.read_text(encoding="utf-8"), sys.argv[1]))
