"""Where a revision's kernels are found."""

import pytest

from sparkdiag.errors import RouteError
from sparkdiag.kernels.sources import DISPATCH, FALLBACK, TRITON, revision_kernels
from tests.fakes.source_trees import MemoryTree

FALLBACK_TEXT = f"from vllm.ops.helper import one\n\n\ndef {FALLBACK}(q): ...\n\n\ndef {DISPATCH}(q): ...\n"
TRITON_TEXT = f"def {TRITON}(q): ...\n"


def test_functions_are_found_by_name_with_what_they_import_beside_them() -> None:
    tree = MemoryTree(
        {
            "vllm/ops/fallbacks.py": FALLBACK_TEXT,
            "vllm/ops/kernels.py": TRITON_TEXT,
            "vllm/ops/helper.py": "one = 1\n",
            "vllm/ops/other.py": "two = 2\n",
            "tests/vllm/test_kernels.py": TRITON_TEXT,
        }
    )
    found = revision_kernels(tree)
    assert found.places == {FALLBACK: "vllm.ops.fallbacks", DISPATCH: "vllm.ops.fallbacks", TRITON: "vllm.ops.kernels"}
    assert set(found.texts) == {"vllm.ops.fallbacks", "vllm.ops.kernels", "vllm.ops.helper"}
    assert found.path_of(TRITON) == "vllm/ops/kernels.py"


def test_what_is_missing_is_noted_and_neither_is_an_error() -> None:
    found = revision_kernels(MemoryTree({"vllm/kernels.py": TRITON_TEXT}))
    assert [note.partition(" has no ")[2] for note in found.notes] == [FALLBACK, DISPATCH]
    with pytest.raises(RouteError, match="has neither"):
        revision_kernels(MemoryTree({"vllm/kernels.py": "x = 1\n"}))
