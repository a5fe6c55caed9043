"""The stand-ins of the confined child, without a child: they follow everything and decide nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.executing.inside import confine, syscalls
from sparkdiag.executing.inside.platforms import Platform, capability_of
from sparkdiag.executing.inside.stubs import Context, NotKnown, Opaque, Quiet, Thing, Triton
from sparkdiag.executing.inside.world import World

DECISIONS = (bool, int, float, len, list, lambda value: 1 in value, lambda value: [0][value], lambda value: not value)


def context(**names: Any) -> Context:
    made = Context()
    made.names, made.dispatching = names, True
    return made


@pytest.mark.parametrize("decide", DECISIONS)
def test_no_decision_is_taken_on_a_stand_in(decide: Any) -> None:
    plain: Any = Opaque(context(), "x")
    for value in (
        plain,
        Opaque(context(), "x").y,
        Opaque(context(), "x")(1)["k"],
        plain + 1 > 2,
    ):
        with pytest.raises(NotKnown, match="x"):
            decide(value)


def test_what_a_decision_hangs_on_is_told_in_the_words_that_lead_there() -> None:
    with pytest.raises(NotKnown, match=r"chunk\.limits\(\) gt \.\.\."):
        bool(Opaque(context(), "chunk").limits() > 5)


def test_a_stand_in_that_can_be_looked_up_is_when_it_matters_and_not_before() -> None:
    looked: list[str] = []

    def find() -> SimpleNamespace:
        looked.append("now")
        return SimpleNamespace(limit=5)

    value = Opaque(context(), "module", find)
    value._context.dispatching = False
    limit = value.limit
    assert looked == []
    assert bool(limit == 5)
    assert looked == ["now"]


def test_while_a_module_is_imported_decorators_leave_the_function_alone() -> None:
    where = context()
    where.dispatching = False

    def function() -> None: ...

    assert Opaque(where, "registered")("name")(function) is function
    assert Quiet()(function) is function


def test_an_object_that_is_there_is_true_and_holds_what_was_named() -> None:
    thing = Thing(context(num_prefills=1), "metadata")
    assert thing
    assert thing.num_prefills == 1
    with pytest.raises(NotKnown):
        bool(thing.other)


def test_launching_a_triton_kernel_is_recorded() -> None:
    ran: list[tuple[Any, ...]] = []
    where = context()
    where.record = lambda *what, **_more: ran.append(what)
    triton = Triton(where)

    @triton.jit
    def kernel() -> None:
        raise AssertionError("a kernel's body is no Python to run")

    kernel[(4,)](1, BLOCK=2)
    assert ran == [("triton", "kernel")]
    assert triton.cdiv(9, 4) == 3
    assert triton.next_power_of_2(9) == 16


def platform(kind: str | None = "cuda", arch: str | None = "sm121") -> Platform:
    return Platform(kind, arch, lambda _self, name: (_ for _ in ()).throw(NotKnown(name)))


@pytest.mark.parametrize(
    ("arch", "family_120", "family_100", "at_least_90", "is_89"),
    [
        ("sm121", True, False, True, False),
        ("sm120a", True, False, True, False),
        ("sm100", False, True, True, False),
        ("sm90", False, False, True, False),
        ("sm89", False, False, False, True),
    ],
)
def test_a_capability_answers_as_the_device_would(
    arch: str, family_120: bool, family_100: bool, at_least_90: bool, is_89: bool
) -> None:
    there = platform(arch=arch)
    assert there.is_device_capability_family(120) is family_120
    assert there.is_device_capability_family(100) is family_100
    assert there.has_device_capability(90) is at_least_90
    assert there.has_device_capability((9, 0)) is at_least_90
    assert there.is_device_capability((8, 9)) is is_89
    assert there.is_device_capability(89) is is_89
    assert (there.get_device_capability() == (8, 9)) is is_89


def test_what_was_not_said_of_the_platform_is_not_known() -> None:
    for decide in (
        lambda: platform(arch=None).is_device_capability_family(120),
        lambda: platform(kind=None).is_cuda(),
        lambda: platform().some_method_of_tomorrow(),
    ):
        with pytest.raises(NotKnown):
            decide()
    assert platform(kind="rocm", arch=None).is_device_capability_family(120) is False
    assert platform(kind="rocm").is_cuda() is False
    assert platform(kind="rocm").is_cuda_alike() is True


@given(st.integers(7, 15), st.integers(0, 9))
def test_an_architecture_is_read_as_its_capability(major: int, minor: int) -> None:
    found = capability_of(f"sm{major}{minor}")
    assert found is not None
    assert tuple(found) == (major, minor)
    assert found.to_int() == major * 10 + minor


@pytest.mark.parametrize("machine", sorted(syscalls.AUDIT_ARCH))
def test_a_filter_fits_the_kernel_and_every_jump_lands_in_it(machine: str) -> None:
    program = confine.filter_program(machine, pid=1234)
    steps = [program[at : at + 8] for at in range(0, len(program), 8)]
    assert len(program) % 8 == 0
    assert len(steps) <= 4096
    for place, step in enumerate(steps):
        code, yes, no = step[0], step[2], step[3]
        if code & 7 == 5:
            assert place + 1 + max(yes, no) < len(steps)
    assert steps[-1][0] & 7 == 6


@pytest.mark.parametrize(
    "event",
    ["socket.__new__", "subprocess.Popen", "os.fork", "os.system", "os.exec", "os.kill", "os.remove", "ctypes.dlopen"],
)
def test_where_the_kernel_filters_nothing_the_interpreter_still_refuses(event: str) -> None:
    with pytest.raises(PermissionError, match="refused"):
        confine._hook(event, ())


def test_the_interpreter_lets_files_be_read_and_not_written() -> None:
    confine._hook("open", ("a.py", "r", 0))
    confine._hook("open", ("a.py", None, 0o2000000))
    for mode, flags in (("w", 0), ("a", 0), ("x", 0), ("r+", 0), (None, 1), (None, 2), (None, 0o100), (None, 0o1000)):
        with pytest.raises(PermissionError):
            confine._hook("open", ("a.py", mode, flags))


def order(**more: Any) -> dict[str, Any]:
    return {
        "package": "vllm", "root": "", "kernels": ["slow"], "entry": "entry", "held": [], "names": {},
        "platform": "cuda", "arch": "sm121", **more,
    }  # fmt: skip


def world(files: dict[str, str], **more: Any) -> World:
    return World(order(**more), ask=files.get, torch=SimpleNamespace(Tensor=type("Tensor", (), {})), codes={})


def called(files: dict[str, str], **more: Any) -> tuple[Any, World]:
    made = world({"vllm/__init__.py": "", **files}, **more)
    module = made.module("vllm.a")
    made.run(module)
    made.dispatching = True
    return module._names["entry"](), made


def test_a_module_that_is_imported_runs_only_when_its_names_are_needed() -> None:
    files = {
        "vllm/a.py": "from vllm.b import used\nfrom vllm.c import unused\ndef entry():\n    return used()\n",
        "vllm/b.py": "def used():\n    return 'b'\n",
        "vllm/c.py": "unused = 1\nraise RuntimeError('nobody asked')\n",
    }
    assert called(files)[0] == "b"


def test_function_local_imports_reexports_relative_imports_and_flags_lead_to_the_real_thing() -> None:
    files = {
        "vllm/a.py": "import vllm.envs as envs\ndef entry():\n"
        "    from .pkg import chosen\n    return chosen(), envs.FLAG\n",
        "vllm/pkg/__init__.py": "from .inner import real as chosen\n",
        "vllm/pkg/inner.py": "LIMIT = 2 * 3\ndef real():\n    return LIMIT\n",
        "vllm/envs.py": "def __getattr__(name):\n    return name.lower()\n",
    }
    assert called(files)[0] == (6, "flag")


def test_a_cyclic_import_is_no_obstacle() -> None:
    files = {
        "vllm/a.py": "from vllm.b import other\ndef entry():\n    return other()\ndef back():\n    return 'a'\n",
        "vllm/b.py": "from vllm.a import back\ndef other():\n    return back()\n",
    }
    assert called(files)[0] == "a"


def test_an_import_of_what_the_revision_lacks_fails_as_it_would() -> None:
    files = {
        "vllm/a.py": "try:\n    from vllm.gone import x\nexcept ImportError:\n    x = None\n"
        "try:\n    from vllm.b import y\nexcept ImportError:\n    y = None\ndef entry():\n    return x, y\n",
        "vllm/b.py": "z = 1\n",
    }
    assert called(files)[0] == (None, None)


def test_the_platform_is_the_one_that_was_asked_about_wherever_it_is_taken_from() -> None:
    files = {
        "vllm/a.py": "from vllm.platforms import current_platform as cp\nBIG = cp.is_device_capability_family(120)\n"
        "def entry():\n    return BIG, cp.is_cuda()\n",
        "vllm/platforms/__init__.py": "raise RuntimeError('it would look at this machine')\n",
    }
    assert called(files)[0] == (True, True)
    assert called(files, arch="sm90")[0] == (False, True)


def test_what_the_stand_in_does_not_know_of_the_platform_the_revisions_own_class_does() -> None:
    files = {
        "vllm/a.py": "from vllm.platforms import current_platform\ndef entry():\n"
        "    return current_platform.support_deep_gemm()\n",
        "vllm/platforms/__init__.py": "",
        "vllm/platforms/cuda.py": "class CudaPlatform:\n    @classmethod\n    def support_deep_gemm(cls):\n"
        "        return cls.is_device_capability(90)\n",
    }
    assert called(files, arch="sm90")[0] is True
    assert called(files, arch="sm121")[0] is False


def test_a_kernel_that_declines_is_noted_as_such() -> None:
    files = {"vllm/a.py": "def slow():\n    return False\ndef entry():\n    return slow()\n"}
    assert [event["kind"] for event in called(files)[1].events] == ["declined"]


def test_a_local_that_is_not_known_holds_what_the_scenario_names() -> None:
    files = {
        "vllm/a.py": "import outside\ndef entry():\n    limit = outside.asked()\n    own = 3\n    return limit, own\n"
    }
    made = world({"vllm/__init__.py": "", **files}, held=["limit", "own"], names={"limit": 7, "own": 8})
    module = made.module("vllm.a")
    made.run(module)
    module._names["__held__"] = lambda name, value: made.names[name] if type(value) is Opaque else value
    made.dispatching = True
    assert module._names["entry"]() == (7, 3)
