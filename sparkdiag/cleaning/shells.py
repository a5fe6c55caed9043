"""What ``--install-completion`` wrote: a file of its own a shell and, for bash, one line of ``~/.bashrc``.

The lines that Typer puts into ``~/.zshrc`` serve other programs as well (they load all of ``~/.zfunc``), so they stay.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sparkdiag.cleaning.found import Found, plain_file

VARIABLE = "_SPARKDIAG_COMPLETE="
FILES = (".bash_completions/sparkdiag.sh", ".zfunc/_sparkdiag", ".config/fish/completions/sparkdiag.fish")
MOST_BYTES = 1 << 20


def completions(home: Path | None = None) -> tuple[Found, ...]:
    """Completion files that call sparkdiag, and the line of ``~/.bashrc`` that reads one."""
    home = home or Path.home()
    return (*_line(home), *(found for name in FILES for found in _file(home / name)))


def _file(path: Path) -> Iterator[Found]:
    text = _read(path)
    if text is not None and VARIABLE in text:
        yield from plain_file("completion", path)


def _line(home: Path) -> Iterator[Found]:
    rc = home / ".bashrc"
    line = f"source '{home / FILES[0]}'"
    text = _read(rc)
    if text is None or without_line(text, line) == text:
        return
    if rc.is_symlink():
        because = f"the file is a link; take this line out by hand: {line}"
        yield Found(kind="completion", path=str(rc), how="never", line=line, because=because)
    else:
        yield Found(kind="completion", path=str(rc), how="line", bytes=len(line) + 1, line=line)


def without_line(text: str, line: str) -> str:
    """``text`` without ``line`` wherever that is a whole line, and without the empty line written before it. Pure."""
    kept: list[str] = []
    for found in text.split("\n"):
        if found != line:
            kept.append(found)
        elif kept and not kept[-1]:
            kept.pop()
    return "\n".join(kept)


def remove_line(found: Found) -> None:
    """Take the line out of its file, at once and with the file's mode. Raises ``OSError``."""
    path = Path(found.path)
    text = _read(path)
    if text is None or path.is_symlink():
        raise OSError("the file can no longer be read")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(without_line(text, found.line))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(path.stat().st_mode & 0o7777)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def remove_empty(home: Path | None = None) -> None:
    """Take away the folder that ``--install-completion`` makes for bash alone, once nothing is in it."""
    with suppress(OSError):
        ((home or Path.home()) / FILES[0]).parent.rmdir()


def _read(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return path.read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError:
        return None
