"""The modules of one revision, read as they are asked for; remembers every path that was looked for."""

from sparkdiag.errors import RouteError
from sparkdiag.routing.source.modules import ModuleSource, parse
from sparkdiag.routing.source.source_tree import Blob, SourceTree

ROOTS = ("", "src/")
"""Where packages lie in a repository."""


class Program:
    """What a revision's source says, module by module."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.files: dict[str, str | None] = {}
        """Blob ids by path, None for what is not there: what the answer depends on."""
        self.faults: dict[str, RouteError] = {}
        """Modules that could not be parsed, by name."""
        self._modules: dict[str, ModuleSource | None] = {}
        self._packages: dict[str, bool] = {}

    def module(self, name: str) -> ModuleSource | None:
        """The module of that dotted name; None where the repository has none, or one that cannot be parsed."""
        if name not in self._modules:
            blob = self._find(name)
            try:
                self._modules[name] = parse(name, blob) if blob is not None else None
            except RouteError as error:
                self.faults[name] = error
                self._modules[name] = None
        return self._modules[name]

    def read_module(self, name: str) -> ModuleSource | None:
        """The module of that dotted name if it was asked for before; it is not read for this."""
        return self._modules.get(name)

    def has_package(self, name: str) -> bool:
        """Whether the top-level package of a dotted name is the repository's own."""
        top = name.split(".")[0]
        if not top.isidentifier():
            return False  # a relative import that leaves the repository
        if top not in self._packages:
            known = any(module is not None and key.split(".")[0] == top for key, module in self._modules.items())
            self._packages[top] = known or self._find(top) is not None
        return self._packages[top]

    def is_module(self, name: str) -> bool:
        return self.module(name) is not None or name in self.faults

    def at(self, path: str) -> ModuleSource | None:
        """The module in a file. Raises ``RouteError`` where it cannot be parsed."""
        name = module_name(path)
        found = self.module(name)
        if name in self.faults:
            raise self.faults[name]
        return found

    def _find(self, name: str) -> Blob | None:
        if not all(part.isidentifier() for part in name.split(".")):
            return None
        for root in ROOTS:
            stem = root + name.replace(".", "/")
            for path in (f"{stem}.py", f"{stem}/__init__.py"):
                blob = self.tree.read(path)
                self.files[path] = blob.oid if blob is not None else None
                if blob is not None:
                    return blob
        return None


def module_name(path: str) -> str:
    """``src/vllm/utils/__init__.py`` → ``vllm.utils``."""
    for root in sorted(ROOTS, reverse=True):
        if root and path.startswith(root):
            path = path.removeprefix(root)
            break
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
