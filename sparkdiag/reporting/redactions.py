"""What was left out of a page, for a person who wants to know. Pure."""

from sparkdiag.evidence.redaction import Redactions
from sparkdiag.harmless.printable import printable


def redactions_text(went: Redactions) -> str:
    """Kinds and counts, then what only a person can tell, each with the fingerprint to name it by."""
    lines = [f"{count:>6}  {kind}" for kind, count in sorted(went.counts.items()) if count]
    made = ["left out, by kind and how often:", *lines] if lines else ["nothing had to be left out"]
    if went.unclassified:
        made += ["", "stays, and may be a secret; look, and if it is none: --not-secret FINGERPRINT"]
        made += [f"  {one.fingerprint}  {one.looks}  in {one.where}: {one.why}" for one in went.unclassified]
    return printable("\n".join(made), newlines=True)
