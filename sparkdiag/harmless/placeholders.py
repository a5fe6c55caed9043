"""What names and addresses are called instead in one public report, and how often each kind was replaced.

One name is called the same all through a report, so that "the same host" can still be read.
"""

import re
from collections import Counter
from typing import Literal

Kind = Literal["secret", "signed URL", "environment variable", "home folder", "user name", "host name", "address"]
Numbered = Literal["host", "address", "GPU"]

USER = "[user]"
HOME = "~"

_TAKEN = re.compile(r"\[(?P<word>host|address|GPU)-(?P<number>[0-9]{1,6})\]")


class Placeholders:
    """Placeholders of one report, numbered in the order in which the names were met."""

    def __init__(self) -> None:
        self.counts: Counter[Kind] = Counter()
        self._known: dict[tuple[Numbered, str], int] = {}
        self._last: Counter[Numbered] = Counter()

    def leave_taken(self, text: str) -> None:
        """``text`` was made public before: its numbers stay with the names that they stood for."""
        for match in _TAKEN.finditer(text):
            word: Numbered = match["word"]  # type: ignore[assignment]  # the pattern's three words
            self._last[word] = max(self._last[word], int(match["number"]))

    def host(self, name: str) -> str:
        """``[host-1]``, and one host name counted."""
        self.counts["host name"] += 1
        return self._numbered("host", name.lower().rstrip("."))

    def address(self, address: str) -> str:
        """``[address-1]``, and one address counted."""
        self.counts["address"] += 1
        return self._numbered("address", address.lower())

    def gpu(self, uuid: str) -> str:
        """``[GPU-1]``: the device's own number, counted with the names of machines."""
        self.counts["host name"] += 1
        return self._numbered("GPU", uuid.lower())

    def user(self) -> str:
        """``[user]``, and one user name counted."""
        self.counts["user name"] += 1
        return USER

    def home(self) -> str:
        """``~``, and one home folder counted."""
        self.counts["home folder"] += 1
        return HOME

    def _numbered(self, word: Numbered, name: str) -> str:
        if (word, name) not in self._known:
            self._last[word] += 1
            self._known[word, name] = self._last[word]
        return f"[{word}-{self._known[word, name]}]"
