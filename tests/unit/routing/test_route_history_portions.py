"""What of a file a route may depend on: too much is harmless, too little would be a wrong answer."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.routing.across.portions import cut, reach

TABLE = """\
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    VLLM_A: bool = False
    \"\"\"Two
    lines.\"\"\"
    VLLM_B: int = 1

# comment
environment_variables: dict[str, object] = {
    # about A
    "VLLM_A": lambda: bool(int(os.environ.get("VLLM_A", "0"))),
    "VLLM_B": lambda: (
        int(os.environ.get("VLLM_B", "1"))
    ),
}

# end


def __getattr__(name):
    return environment_variables[name]()
"""


def same(before: str, after: str, *, root: str = "entry") -> bool:
    """Whether a reading that starts at ``root`` may be carried from one text to the other."""
    old, new = cut(before), cut(after)
    assert old is not None
    return new is not None and reach({"a.py": old}, roots=[root]).same_in("a.py", new)


BASE = """\
def entry():
    return helper(LIMIT)


def helper(x):
    return x


LIMIT = 2


def other():
    pass
"""


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (BASE.replace("    pass", "    return 5"), True),
        (BASE + "\n\nNEW = 1\n", True),
        ("# moved down\n\n\n" + BASE, True),
        (BASE.replace("LIMIT = 2", "LIMIT = 3"), False),
        (BASE.replace("return x", "return 2 * x"), False),
        (BASE + "LIMIT += 1\n", False),
        (BASE + "if other:\n    LIMIT = 4\n", False),
        (BASE + "from elsewhere import helper\n", False),
        (BASE + "from elsewhere import *\n", False),
        (BASE + "def third():\n    global LIMIT\n    LIMIT = 1\n", False),
        (BASE + "LIMIT, other = 1, 2\n", False),
        (BASE + "other().helper = None\n", False),
        (BASE + "globals().update(LIMIT=1)\n", False),
        (BASE + "class helper:\n    pass\n", False),
        (BASE + "try:\n    import helper\nexcept ImportError:\n    other = None\n", False),
        (BASE + "def __getattr__(name):\n    return name\n", False),
        (BASE + "x = (\n", False),
        (BASE.replace("LIMIT = 2", '"""\nLIMIT = 2\n"""'), False),
        (BASE.replace("def helper", "@other\ndef helper"), False),
        (BASE + "import a; helper = 1\n", False),
    ],
)
def test_what_may_matter_is_told_from_what_cannot(after: str, expected: bool) -> None:
    assert same(BASE, after) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"VLLM_B": lambda', '"VLLM_NEW": lambda: 1,\n    "VLLM_B": lambda', True),
        ("VLLM_B: int = 1", "VLLM_NEW: int = 1\n    VLLM_B: int = 1", True),
        ('("VLLM_B", "1")', '("VLLM_B", "2")', True),
        ('("VLLM_A", "0")', '("VLLM_A", "1")', False),
        ("VLLM_A: bool = False", "VLLM_A: bool = True", False),
        ("import os\n", "import os as other\n", False),
        ("    # about A", "    **os.environ,\n    # about A", False),
        ("# end\n", "environment_variables = {}\n", False),
    ],
)
def test_a_flag_depends_on_its_own_entry_of_the_table(old: str, new: str, expected: bool) -> None:
    assert old in TABLE
    assert same(TABLE, TABLE.replace(old, new, 1), root="VLLM_A") is expected


def test_a_table_is_cut_into_entries() -> None:
    found = cut(TABLE)
    assert found is not None and {"VLLM_A", "VLLM_B", "os", "__getattr__"} <= set(found.by_name)
    assert all(len(portion.words) < 20 for portion in found.portions)


@pytest.mark.parametrize(
    "text", ["x = (\n", "def f(:\n", "  x = 1\n", "'''\n", "x = 1\n  y = 2\n", "a\0b\n", "else:\n    x\n"]
)
def test_what_is_no_python_is_not_cut(text: str) -> None:
    assert cut(text) is None


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# only a comment", "x = 1", "#!/bin/sh\n# -*- coding: utf-8 -*-\nx = 1\n"]
)
def test_what_holds_little_is_cut(text: str) -> None:
    assert cut(text) is not None


PIECES = st.sampled_from(
    (
        "def f():\n    return 1\n",
        "@wraps\ndef g():\n    '''Doc\nat the margin: x = 1\n    '''\n",
        "if a:\n    b = 1\nelif c:\n    d = 2\nelse:\n    e = 3\n",
        "try:\n    import x\nexcept E:\n    x = None\nfinally:\n    pass\n",
        "t = [\n1,\n2,\n]\n",
        '"""\ndef inside():\n    pass\n"""\n',
        "# comment\n",
        "a = 1; b = 2\n",
        "x = '''\nif y:\n'''\n",
        "while a: b()\n",
        "class C:\n    def f(self):\n        global z\n",
        "c = 1 \\\n+ 2\n",
        "(\n",
        ")\n",
        "'''\n",
        "    d = 1\n",
    )
)


@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_file_is_cut_exactly_where_it_parses_and_no_binding_is_lost(text: str) -> None:
    try:
        body = ast.parse(text).body
    except SyntaxError:
        assert cut(text) is None
        return
    found = cut(text)
    assert found is not None
    bound = {node.id for one in body for node in ast.walk(one) if isinstance(node, ast.Name) and _stored(node, one)}
    bound |= {one.name for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
    assert bound <= set(found.by_name)


def _stored(node: ast.Name, statement: ast.stmt) -> bool:
    return isinstance(node.ctx, ast.Store) and not isinstance(statement, ast.FunctionDef | ast.ClassDef)
