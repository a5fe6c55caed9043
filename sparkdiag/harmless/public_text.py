"""One text made fit for strangers: secrets, homes, users, hosts and addresses out. Pure, but for what it remembers.

Done in two steps over all texts of a report: first it learns which names are given away anywhere, then it takes them
out everywhere.
"""

import re
from collections.abc import Callable

from sparkdiag.harmless.addresses import without_addresses
from sparkdiag.harmless.homes import is_somebody, known_users, users_in, without_homes
from sparkdiag.harmless.hosts import hosts_in, known_hosts, without_hosts
from sparkdiag.harmless.identities import Identities
from sparkdiag.harmless.placeholders import Placeholders
from sparkdiag.harmless.secrets import REDACTED, redact_text

_QUERIED = re.compile(
    r"(?P<url>\b[a-z][a-z0-9+.-]{1,10}://[^\s?#\"'<>`]{1,800}+)\?(?P<query>(?:\[redacted\]|[^\s\"'<>`()\[\]])++)",
    re.IGNORECASE,
)
_SIGNING = re.compile(
    r"(?:signature|sig|x-amz-[a-z-]{1,40}|x-goog-[a-z-]{1,40}|key-pair-id|awsaccesskeyid|googleaccessid|token|policy)=",
    re.IGNORECASE,
)
"""A URL whose query signs it, or holds a token: all of the query goes, whose account it is included."""


class PublicText:
    """Texts of one report, each different one made public once; what was replaced is counted in ``found``."""

    def __init__(self, identities: Identities) -> None:
        self.found = Placeholders()
        self._users = set(identities.users)
        self._hosts = set(identities.hosts)
        self._known: tuple[Callable[[str, Placeholders], str], ...] | None = None
        self._done: dict[str, str] = {}
        self._learnt: set[str] = set()

    def learn(self, text: str) -> None:
        """Remember the names that ``text`` gives away, so that they go wherever they stand."""
        if len(text) < 4 or text in self._learnt:
            return
        self._learnt.add(text)
        self.found.leave_taken(text)
        self._users.update(users_in(text))
        self._hosts.update(hosts_in(text))
        self._known = None

    def __call__(self, text: str) -> str:
        """``text`` as strangers may see it."""
        known = self._done.get(text)
        if known is None:
            known = self._done[text] = self._public(text)
        return known

    def secrets(self, before: str, after: str) -> None:
        """Count what somebody else took out of ``before``."""
        if before != after:
            self.found.counts["secret"] += max(after.count(REDACTED) - before.count(REDACTED), 1)

    def _public(self, text: str) -> str:
        if len(text) < 2:
            return text
        signed = _QUERIED.sub(self._signed, text) if "?" in text and "=" in text else text
        clean = redact_text(signed)
        self.secrets(signed, clean)
        clean = without_homes(clean, self.found)
        clean = without_hosts(clean, self.found)
        clean = without_addresses(clean, self.found)
        if self._known is None:
            people = frozenset(name for name in self._users if is_somebody(name))
            self._known = (known_hosts(frozenset(self._hosts)), known_users(people))
        for take in self._known:
            clean = take(clean, self.found)
        return clean

    def _signed(self, match: re.Match[str]) -> str:
        if _SIGNING.search(match["query"]) is None:
            return match[0]
        self.found.counts["signed URL"] += 1
        return f"{match['url']}?{REDACTED}"
