"""What a random dispatch program consists of, and its text."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

KINDS = ("bool", "int", "opt", "pair", "tensor")
VALUES: dict[str, tuple[str, ...]] = {
    "bool": ("True", "False"),
    "int": ("0", "1", "3", "512", "1024"),
    "opt": ("None", "fp8[8, 4]"),
    "pair": ("(fp8[8, 4, 2], None)", "(fp8[8, 4, 2], fp32[8])"),
    "tensor": ("fp8[8, 4, 2]", "fp8[1024, 4, 2]", "fp32[8, 4]"),
}
"""What a name of each kind may hold."""
DEFAULTS = {"bool": "False", "int": "3", "opt": "None"}
KERNELS = ("fast", "slow", "other")
CHOICES = 400
"""Bytes a program is made from."""
FAMILIES = ("current_platform.is_device_capability_family(120)", "current_platform.is_device_capability((8, 9))")
DEVICE_TESTS = (
    *FAMILIES,
    "current_platform.has_device_capability(90)",
    "current_platform.is_cuda()",
    "current_platform.is_xpu()",
    "current_platform.get_device_capability()[0] == 12",
)


@dataclass
class Function:
    """One function of a program."""

    name: str
    module: int
    parameters: tuple[tuple[str, str], ...]
    """Name and kind."""
    defaults: dict[str, str]
    decides: bool
    """It returns a truth value; else nothing that anybody asks for."""
    body: list[str] = field(default_factory=list)


@dataclass
class Program:
    """A whole program and what may be said about it."""

    files: dict[str, str] = field(repr=False)
    parameters: dict[str, str]
    """Kinds of the entry function's parameters."""
    flags: tuple[tuple[str, str], ...]
    """(module, name) of flags that other code sets."""
    variables: tuple[str, ...]
    """Environment flags that are asked for."""

    def shown(self) -> str:
        return "\n".join(f"# {path}\n{text}" for path, text in self.files.items() if "kernels" not in path)


Scope = dict[str, list[str]]


def module_name(module: int) -> str:
    return "vllm.dispatch" if module == 0 else f"vllm.part{module}"


def module_path(module: int) -> str:
    return module_name(module).replace(".", "/") + ".py"


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def written(function: Function) -> list[str]:
    parameters = [
        f"{name}={function.defaults[name]}" if name in function.defaults else name for name, _ in function.parameters
    ]
    return [f"def {function.name}({', '.join(parameters)}):", *indented(function.body)]


def envs(names: list[str]) -> str:
    table = "\n".join(f'    "{name}": lambda: bool(int(os.getenv("{name}", "0"))),' for name in names)
    return textwrap.dedent(
        """\
        import os

        environment_variables = {{
        {table}
        }}


        def __getattr__(name):
            if name in environment_variables:
                return environment_variables[name]()
            raise AttributeError(name)
        """
    ).format(table=table)
