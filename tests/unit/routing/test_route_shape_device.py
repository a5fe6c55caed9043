"""Guards on the device: the platform object's methods, under every name it is reached by."""

import pytest

from sparkdiag.evidence.route import Platform
from tests.fakes.executed_trees import Device
from tests.fakes.source_trees import ask, config_of
from tests.unit.routing.shape_case import DEVICES, check, guard, told

CUDA = tuple(DEVICES.values())


def program(test: str, *, imports: str = "from vllm.platforms import current_platform", before: str = "pass") -> str:
    return f"""
{imports}
from vllm.kernels import fast, slow

def entry():
    {before}
    if {test}:
        return fast()
    return slow()
"""


@pytest.mark.parametrize("arch", ["sm89", "sm90", "sm100", "sm120", "sm121"])
@pytest.mark.parametrize(
    ("test", "archs"),
    [
        ("current_platform.is_device_capability_family(120)", {"sm120", "sm121"}),
        ("current_platform.is_device_capability_family(100)", {"sm100"}),
        ("current_platform.is_device_capability((8, 9))", {"sm89"}),
        ("current_platform.is_device_capability(90)", {"sm90"}),
        ("current_platform.is_device_capability(121)", {"sm121"}),
        ("current_platform.has_device_capability(90)", {"sm90", "sm100", "sm120", "sm121"}),
        ("current_platform.has_device_capability((12, 1))", {"sm121"}),
        ("current_platform.get_device_capability() >= (10, 0)", {"sm100", "sm120", "sm121"}),
        ("current_platform.get_device_capability() == (9, 0)", {"sm90"}),
        ("current_platform.get_device_capability()[0] == 12", {"sm120", "sm121"}),
        ("current_platform.get_device_capability() in ((8, 9), (9, 0))", {"sm89", "sm90"}),
        ("current_platform.is_cuda()", set(DEVICES)),
        ("current_platform.is_rocm() or current_platform.is_xpu()", set()),
    ],
)
def test_capabilities(test: str, archs: set[str], arch: str) -> None:
    route = check(program(test), "fast" if arch in archs else "slow", arch=arch)
    # vLLM's capability is a named tuple, which a small stub need not be: what matters is that nothing stayed unknown.
    assert [found.value for found in route.guards if found.value == "unknown"] == []


@pytest.mark.parametrize(
    ("platform", "test", "expected"),
    [
        ("rocm", "current_platform.is_cuda()", "slow"),
        ("rocm", "current_platform.is_rocm()", "fast"),
        ("rocm", "current_platform.is_cuda_alike()", "fast"),
        ("xpu", "current_platform.is_xpu()", "fast"),
        ("xpu", "not current_platform.is_xpu()", "slow"),
        ("xpu", "current_platform.is_cuda_alike()", "slow"),
        ("cpu", "current_platform.is_cpu()", "fast"),
        ("cpu", "current_platform.is_cuda() and current_platform.is_device_capability_family(120)", "slow"),
    ],
)
def test_other_platforms(platform: Platform, test: str, expected: str) -> None:
    check(program(test), expected, arch=None, platform=platform)


def test_an_architecture_that_is_not_given_stays_unknown() -> None:
    test = "current_platform.is_device_capability_family(120)"
    route = check(program(test), {"fast", "slow"}, arch=None, devices=CUDA)
    assert guard(route, test).value == "unknown"


def test_a_platform_that_is_not_given_stays_unknown() -> None:
    devices = (*CUDA, Device("xpu", None), Device("cpu", None))
    route = check(program("current_platform.is_xpu()"), {"fast", "slow"}, arch=None, platform=None, devices=devices)
    assert not route.exact


def test_one_unknown_capability_is_not_two() -> None:
    source = """
    from vllm.platforms import current_platform
    from vllm.kernels import fast, slow, other

    def entry():
        if current_platform.is_device_capability_family(120):
            return fast()
        if current_platform.is_device_capability_family(120):
            return other()
        return slow()
    """
    check(source, {"fast", "slow"}, arch=None, devices=CUDA)


def test_the_guard_names_the_option_that_decided_it() -> None:
    route = check(program("current_platform.is_device_capability_family(120)"), "fast", arch="sm121")
    found = guard(route, "current_platform.is_device_capability_family(120)")
    assert found.value == "true" and "sm121" in found.because and "--arch" in found.because, told(route)
    route = check(program("current_platform.is_device_capability_family(120)"), "slow", arch="sm90")
    assert "sm90" in guard(route, "current_platform.is_device_capability_family(120)").because


@pytest.mark.parametrize(
    ("imports", "before", "test"),
    [
        ("from vllm.platforms import current_platform", "cp = current_platform", "cp.is_device_capability_family(120)"),
        ("from vllm import platforms", "pass", "platforms.current_platform.is_device_capability_family(120)"),
        ("import vllm.platforms", "pass", "vllm.platforms.current_platform.is_device_capability_family(120)"),
        ("import vllm.platforms as p", "pass", "p.current_platform.is_device_capability_family(120)"),
        ("from vllm.platforms import current_platform as here", "pass", "here.is_device_capability_family(120)"),
        ("pass", "from vllm.platforms import current_platform", "current_platform.is_device_capability_family(120)"),
        (
            "from vllm.platforms import current_platform",
            "family = current_platform.is_device_capability_family",
            "family(120)",
        ),
        (
            "from vllm.platforms import current_platform",
            "major, minor = current_platform.get_device_capability()",
            "major == 12",
        ),
        (
            "from vllm.platforms import current_platform\nIS_SM12X = current_platform.is_device_capability_family(120)",
            "pass",
            "IS_SM12X",
        ),
    ],
)
def test_the_platform_under_other_names(imports: str, before: str, test: str) -> None:
    check(program(test, imports=imports, before=before), "fast", arch="sm121")
    check(program(test, imports=imports, before=before), "slow", arch="sm90")


def test_the_platform_as_an_argument() -> None:
    source = """
    from vllm.platforms import current_platform
    from vllm.kernels import fast, slow

    def is_spark(platform, *, family=120):
        return platform.is_cuda() and platform.is_device_capability_family(family)

    def entry():
        return fast() if is_spark(current_platform) else slow()
    """
    check(source, "fast", arch="sm121")
    check(source, "slow", arch="sm90")


def test_a_platform_module_that_makes_its_object_on_demand() -> None:
    # As vLLM does it: the object is no name of the module, but what its __getattr__ returns.
    files = {
        "vllm/dispatch.py": program("current_platform.is_device_capability_family(120)"),
        "vllm/platforms/__init__.py": """
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            current_platform: "Platform"

        _current_platform = None

        def resolve():
            raise RuntimeError("no device here")

        def __getattr__(name):
            if name == "current_platform":
                return resolve()
            raise AttributeError(name)
        """,
    }
    route = ask(files, config=config_of(arch="sm121"))
    assert route.kernels == ("fast",) and route.exact, told(route)
    route = ask(files, config=config_of(arch="sm90"))
    assert route.kernels == ("slow",) and route.exact, told(route)


def test_a_method_that_nobody_knows_stays_unknown() -> None:
    test = "current_platform.likes_this_kernel()"
    route = ask(program(test))
    assert set(route.kernels) == {"fast", "slow"} and not route.exact
    assert guard(route, test).value == "unknown"


def test_a_name_that_only_looks_like_the_platform_is_not_it() -> None:
    source = """
    from vllm.kernels import fast, slow

    class Answer:
        def is_cuda(self):
            return False

    current_platform = Answer()

    def entry():
        return fast() if current_platform.is_cuda() else slow()
    """
    route = ask(source)
    assert "slow" in route.kernels, told(route)
