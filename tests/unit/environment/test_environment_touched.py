"""What changed paths ask of an environment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment.touched import only_literals, sort_out

NAMES = st.text("abcxyz_", min_size=1, max_size=8)
HARMLESS = st.one_of(
    st.builds(lambda name: f"vllm/{name}.py", NAMES),
    st.builds(lambda name: f"docs/{name}.md", NAMES),
    st.builds(lambda name: f"tests/{name}.py", NAMES),
    st.just("vllm/distributed/kv_transfer/kv_connector/v1/hf3fs/utils/hf3fs_utils.cpp"),
    st.just("requirements/cpu.txt"),
)
COMPILED = st.sampled_from(
    [
        "csrc/cpu/attention.cpp", "csrc/torch_bindings.cpp", "CMakeLists.txt", "cmake/utils.cmake", "rust/src/lib.rs",
        "rust/proto/vllm_grpc.proto", "vllm/grpc/engine.proto", "build_rust.sh", ".gitmodules", "tools/build_rust.py",
    ]
)  # fmt: skip


@given(st.lists(HARMLESS, unique=True), st.booleans())
def test_python_documents_tests_and_requirements_need_no_build(paths: list[str], cpu: bool) -> None:
    found = sort_out(paths, cpu_base=cpu)
    assert not found.compiled and found.python == sum(path.startswith("vllm/") for path in paths)
    assert found.requirements == tuple(path for path in paths if path.startswith("requirements/"))
    assert found.python + found.other + len(found.requirements) == len(paths)


@given(st.lists(HARMLESS), COMPILED, st.booleans())
def test_one_source_of_a_compiled_part_is_enough(paths: list[str], compiled: str, cpu: bool) -> None:
    found = sort_out([*paths, compiled], cpu_base=cpu)
    assert found.compiled == (compiled,) and compiled in found.because and "\n" not in found.because


@pytest.mark.parametrize("path", ["csrc/attention/paged.cu", "csrc/quantization/fp4.cuh", "csrc/rocm/ops.h"])
def test_a_cpu_build_has_no_kernels_of_gpus(path: str) -> None:
    assert sort_out([path], cpu_base=False).compiled == (path,)
    found = sort_out([path, "vllm/a.py"], cpu_base=True)
    assert not found.compiled and found.gpu_only == (path,) and path in found.because


def test_setup_counts_as_a_build_part_unless_it_is_known_to_be_none() -> None:
    assert sort_out(["setup.py"], cpu_base=False).compiled == ("setup.py",)
    assert sort_out(["setup.py"], cpu_base=False, setup_lines=["    ext_modules = []"]).compiled
    found = sort_out(["setup.py"], cpu_base=False, setup_lines=['        "zen": ["zentorch==5.2.1"],', "    ],"])
    assert not found.compiled and found.requirements == ("setup.py",) and "setup.py" in found.because


@pytest.mark.parametrize(
    ("line", "literal"),
    [
        ('        "bench": ["pandas", "matplotlib"],', True),
        ("        # a comment", True),
        ("    ],", True),
        ('"transformers >= 4.56.0, < 6",', True),
        ('"libs/*.so*",', True),
        ("", True),
        ('    ext_modules.append(CMakeExtension(name="vllm._C"))', False),
        ('"x": compute(),', False),
        ("import os", False),
        ("VERSION = 3", False),
        ("if _is_cuda():", False),
        ('print("x")', False),
    ],
)
def test_lines_of_setup_that_are_no_instruction(line: str, literal: bool) -> None:
    assert only_literals([line]) is literal


def test_words_for_people() -> None:
    assert sort_out([], cpu_base=False).because == "no file of vllm's Python package changed since the base"
    assert sort_out(["vllm/a.py"], cpu_base=False).because == "1 file of vllm's Python package changed since the base"
    assert sort_out(["setup.py"], cpu_base=False).because.startswith("1 source of compiled parts")
    found = sort_out([f"csrc/{number}.cpp" for number in range(9)], cpu_base=False)
    assert found.because.startswith("9 sources of compiled parts changed since the base: csrc/0.cpp, csrc/1.cpp, ")
    assert found.because.endswith(" and 6 more")
