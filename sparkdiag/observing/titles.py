"""Who a process is, from its title: ``sparkdiag.evidence.titles`` under the name that the watching parts use."""

from sparkdiag.evidence.titles import TITLE_CHARACTERS, classify, is_sampled, is_sparkdiag, shown_title

__all__ = ["TITLE_CHARACTERS", "classify", "is_sampled", "is_sparkdiag", "shown_title"]
