"""Lets these tests import their helper modules, and the recordings' readers: pytest's importlib mode adds no folder to
the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "judging"))
