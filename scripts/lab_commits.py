"""Record the lab's commit ids after an edit of ``sparkdiag/lab/source``: ``python scripts/lab_commits.py``.

The ids are constants (``sparkdiag/lab/history.py``) and the lab scenario's suspect commit, so that a copy which is not
the lab's is noticed; a test fails until they are what the source gives.
"""

import re
import tempfile
from pathlib import Path

from sparkdiag.lab import history

ROOT = Path(__file__).resolve().parent.parent
RECORDED = {"SUSPECT_COMMIT": "fused", "FIX_COMMIT": "gate-dropped", "MAIN_COMMIT": "refs/heads/main"}


def main() -> None:
    """Write the constants and the scenario's commit, and say what they are."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "lab.git"
        history._generate(made)
        commits = {name: history.resolve(made, revision) for name, revision in RECORDED.items()}
    module = ROOT / "sparkdiag" / "lab" / "history.py"
    text = module.read_text(encoding="utf-8")
    for name, commit in commits.items():
        text = re.sub(rf'^{name} = "[0-9a-f]+"', f'{name} = "{commit}"', text, flags=re.MULTILINE)
        print(f"{name} {commit}")
    module.write_text(text, encoding="utf-8")
    scenario = ROOT / "scenarios" / "lab.toml"
    text = scenario.read_text(encoding="utf-8")
    scenario.write_text(
        re.sub(r'^commit = "[0-9a-f]+"', f'commit = "{commits["SUSPECT_COMMIT"]}"', text, flags=re.MULTILINE),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
