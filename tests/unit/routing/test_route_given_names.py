"""A name is what the source sets it to, whatever it is called; what is given as a whole expression is known."""

from __future__ import annotations

import pytest

from sparkdiag.evidence.route import RouteConfig, SetValue
from sparkdiag.reporting.route_phrases import how_exact
from sparkdiag.routing.route import find_route
from sparkdiag.scenario.route import RouteValue
from tests.fakes.source_trees import MemoryTree, scenario_with, tree_of

VALUES = (
    RouteValue(name="dcp_world_size", value="dcp", anywhere=True),
    RouteValue(name="get_dcp_group().world_size", value="dcp", anywhere=True),
    RouteValue(name="decode_context_parallel_size", value="dcp", anywhere=True),
)
GROUPS = """
_DCP = None


def get_dcp_group():
    assert _DCP is not None
    return _DCP


def get_pcp_group():
    return _DCP


def set_group(group):
    global _DCP
    _DCP = group
"""
ENTRY = """
import vllm.groups
from vllm.groups import get_dcp_group, get_pcp_group
from vllm.kernels import fast, other, slow


def entry(a, meta, {parameter}):
    {setting}
    if {guard}:
        return fast(a)
    return slow(a)
"""


CHANGING = """
from vllm.kernels import fast, slow


def pick(a):
    return True


def entry(a):
    return fast(a) if pick(a) else slow(a)
"""


def reached(
    setting: str, *, guard: str = "dcp_world_size <= 1", parameter: str = "b", dcp: int = 2
) -> tuple[tuple[str, ...], bool]:
    source = ENTRY.format(setting=setting, guard=guard, parameter=parameter)
    files = {**tree_of({"vllm/dispatch.py": source, "vllm/groups.py": GROUPS})}
    found = find_route(MemoryTree(files), scenario=scenario_with(VALUES), config=RouteConfig(dcp=dcp, arch="sm121"))
    return tuple(sorted(found.kernels)), found.exact


@pytest.mark.parametrize(
    "setting",
    [
        "dcp_world_size = get_pcp_group().world_size",
        "dcp_world_size = get_dcp_group().rank_in_group",
        "dcp_world_size = undefined(3)",
        "dcp_world_size = meta.other",
        "_, dcp_world_size = meta.sizes",
    ],
)
def test_a_local_is_not_the_dcp_size_for_its_name(setting: str) -> None:
    kernels, exact = reached(setting)
    assert set(kernels) == {"fast", "slow"} or not exact
    assert not exact


def test_a_local_is_what_it_is_set_to() -> None:
    assert reached("dcp_world_size = get_dcp_group().world_size - 1") == (("fast",), True)
    assert reached("dcp_world_size = 1") == (("fast",), True)
    assert reached("dcp_world_size = 4", dcp=1) == (("slow",), True)


@pytest.mark.parametrize(("dcp", "kernel"), [(1, "fast"), (2, "slow")])
@pytest.mark.parametrize(
    ("setting", "guard", "parameter"),
    [
        ("pass", "dcp_world_size <= 1", "dcp_world_size"),
        ("pass", "get_dcp_group().world_size <= 1", "b"),
        ("n = vllm.groups.get_dcp_group().world_size", "n <= 1", "b"),
        ("n = meta.dcp_world_size", "n <= 1", "b"),
        ("n = meta.parallel_config.decode_context_parallel_size", "n <= 1", "b"),
    ],
)
def test_the_dcp_size_is_known_however_it_is_had(
    setting: str, guard: str, parameter: str, dcp: int, kernel: str
) -> None:
    assert reached(setting, guard=guard, parameter=parameter, dcp=dcp) == ((kernel,), True)


def test_what_is_given_can_be_had_so_its_handler_is_not_needed() -> None:
    setting = """
    try:
        n = get_dcp_group().world_size
        rank = get_dcp_group().rank_in_group
    except AssertionError:
        n, rank = 1, 0
    """
    assert reached(setting, guard="n <= 1") == (("slow",), True)


@pytest.mark.parametrize(
    "change",
    [
        "globals()['pick'] = lambda a: False",
        "import sys\nsetattr(sys.modules[__name__], 'pick', None)",
        "import vllm.dispatch as me\nme.pick = None",
    ],
)
def test_a_module_that_changes_its_own_names_is_not_taken_at_its_word(change: str) -> None:
    source = f"{CHANGING}\n\n{change}\n"
    found = find_route(MemoryTree(tree_of(source)), scenario=scenario_with(), config=RouteConfig(dcp=1, arch="sm121"))
    assert not found.exact
    assert any("changes names" in line.reason for line in found.not_understood)


def test_a_second_function_of_the_entrys_name_is_told() -> None:
    one = "from vllm.kernels import fast\n\n\ndef entry(a):\n    return fast(a)\n"
    files = {**tree_of({"vllm/aa.py": one, "vllm/zz.py": one.replace("fast", "slow")})}
    found = find_route(MemoryTree(files), scenario=scenario_with(), config=RouteConfig(dcp=1, arch="sm121"))
    assert not found.exact
    assert [line.path for line in found.not_understood] == ["vllm/zz.py"]


def test_a_kernel_under_a_new_name_is_no_safe_answer() -> None:
    source = (
        "import torch\n\n\ndef renamed(a):\n    return torch.matmul(a, a)\n\n\ndef entry(a):\n    return renamed(a)\n"
    )
    found = find_route(MemoryTree(tree_of(source)), scenario=scenario_with(), config=RouteConfig(dcp=1, arch="sm121"))
    assert found.kernels == ("renamed",)
    assert not found.reached[0].listed
    assert found.stall_path == "unknown"


@pytest.mark.parametrize(("said", "kernel"), [("0", "slow"), ("7", "fast")])
def test_what_the_user_says_of_an_attribute_by_its_whole_name_counts(said: str, kernel: str) -> None:
    source = (
        "from vllm.kernels import fast, slow\n"
        "\n"
        "\n"
        "def entry(a, chunk):\n"
        "    return fast(a) if chunk.n > 0 else slow(a)\n"
    )
    config = RouteConfig(dcp=1, arch="sm121", set=(SetValue(name="chunk.n", value=said),))
    found = find_route(MemoryTree(tree_of(source)), scenario=scenario_with(), config=config)
    assert (found.kernels, found.exact) == ((kernel,), True)


def test_a_flag_that_the_user_sets_is_set() -> None:
    source = (
        "import os\n"
        "\n"
        "from vllm.kernels import fast, slow\n"
        "\n"
        "\n"
        "def entry(a):\n"
        "    return slow(a) if 'VLLM_X' in os.environ else fast(a)\n"
    )
    plain = find_route(MemoryTree(tree_of(source)), scenario=scenario_with(), config=RouteConfig(dcp=1))
    assert plain.kernels == ("fast",)
    assert "taken as not set: VLLM_X" in how_exact(plain)
    config = RouteConfig(dcp=1, set=(SetValue(name="VLLM_X", value="1"),))
    assert find_route(MemoryTree(tree_of(source)), scenario=scenario_with(), config=config).kernels == ("slow",)
