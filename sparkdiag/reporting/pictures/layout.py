"""How wide a picture is, and where in it the plots stand. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """Pixels at the size for which the letters are meant."""

    width: float
    left: float
    right: float
    """The plots lie between the two; names stand left of them."""
    about: int
    """Marks on a time axis."""


WIDE = Layout(width=1000.0, left=176.0, right=984.0, about=9)
NARROW = Layout(width=640.0, left=160.0, right=626.0, about=5)
"""For two side by side."""
