"""Lets these tests import their helper modules, and the runs that scripts/calibrate_forecast.py measures the judge on:
pytest's importlib mode adds no folder to the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[3] / "scripts"))
