"""Which files of a base environment a revision's tree needs: what a build makes and git does not hold. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from sparkdiag.environment.tree import SUBMODULE, Tree
from sparkdiag.evidence.base import Value

GENERATED = re.compile(
    r"(.*/)?[^/]+\.so(\.[0-9]+)*|_version\.py|(.*/)?[^/]+_pb2(_grpc)?\.pyi?|vllm-rs|libs/.*"
    r"|vllm_flash_attn/.*|third_party/(triton_kernels|flashmla|deep_gemm|fmha_sm100)/.*"
)
"""What vLLM's build writes into the package (its .gitignore and setup.py, as of 0.23): compiled extensions, the version
file, protobuf modules, the Rust front end, and Python that CMake copies from other projects."""


class OverlayFiles(Value):
    """Paths relative to the ``vllm`` package."""

    links: tuple[str, ...]
    """Of the base, to be linked into the revision's tree."""
    same: tuple[str, ...]
    """Modules that base and revision have in common, byte for byte: the base's bytecode is theirs too."""
    own: tuple[str, ...] = ()
    """Modules that the base has not, or not like this."""
    foreign: tuple[str, ...] = ()
    """Modules of the base that differ from the commit it is said to be."""
    submodules: tuple[str, ...] = ()
    """Folders whose content git does not hold; the base's stands in."""

    @property
    def compiled(self) -> tuple[str, ...]:
        return tuple(path for path in self.links if ".so" in PurePosixPath(path).suffixes)


def choose_files(
    base: Mapping[str, str | None], *, at_base: Tree | None, at_revision: Tree, checkout: bool
) -> OverlayFiles:
    """``base``: every file of the base's package, with the git blob id of each module.

    ``at_base``: the tree of the base's own commit; None where that is not known. ``checkout``: the base is somebody's
    working tree, in which files lie that belong to no build. Only what looks generated is taken from either.
    """
    held = {path: entry for path, entry in at_revision.items() if entry.mode != SUBMODULE}
    folders = {folder for path in held for folder in _above(path)}
    sure = at_base if not checkout else None

    def belongs(path: str) -> bool:
        if path in held or path in folders or any(folder in held for folder in _above(path)):
            return False
        return path not in sure if sure is not None else bool(GENERATED.fullmatch(path))

    links = tuple(sorted(path for path in base if belongs(path)))
    same = (path for path, oid in base.items() if oid is not None and path in held and held[path].oid == oid)
    return OverlayFiles(
        links=links,
        same=tuple(sorted({*same, *(path for path in links if base[path] is not None)})),
        own=tuple(sorted(path for path, entry in held.items() if path.endswith(".py") and base.get(path) != entry.oid)),
        foreign=_foreign(base, at_base),
        submodules=tuple(sorted(path for path, entry in at_revision.items() if entry.mode == SUBMODULE)),
    )


def _above(path: str) -> Iterator[str]:
    """The folders a path lies in, the innermost first."""
    while (end := path.rfind("/")) > 0:
        path = path[:end]
        yield path


def _foreign(base: Mapping[str, str | None], at_base: Tree | None) -> tuple[str, ...]:
    if at_base is None:
        return ()
    return tuple(sorted(path for path, oid in base.items() if oid and path in at_base and at_base[path].oid != oid))


def counted(paths: Collection[str], *, most: int = 3) -> str:
    """``csrc/a.cpp, csrc/b.cpp and 4 more``."""
    first = ", ".join(sorted(paths)[:most])
    return f"{first} and {len(paths) - most} more" if len(paths) > most else first
