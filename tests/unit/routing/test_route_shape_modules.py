"""Names across modules: imports of every form, re-exports, moved files, constants and flags."""

import pytest

from sparkdiag.evidence.route import SetValue
from sparkdiag.routing.route import find_route
from tests.fakes.source_trees import MemoryTree, ask, config_of, scenario_with, tree_of
from tests.unit.routing.shape_case import check, check_open, guard, told

BOTH = {"fast", "slow"}

CHOICE = """
from vllm.kernels import fast, slow

LIMIT = 4

def choose(n):
    return fast() if n > LIMIT else slow()
"""


@pytest.mark.parametrize(
    ("top", "local", "call"),
    [
        ("from vllm.ops.choice import choose", "pass", "choose(n)"),
        ("from vllm.ops.choice import choose as pick", "pass", "pick(n)"),
        ("import vllm.ops.choice", "pass", "vllm.ops.choice.choose(n)"),
        ("import vllm.ops.choice as c", "pass", "c.choose(n)"),
        ("from vllm.ops import choice", "pass", "choice.choose(n)"),
        ("from vllm.ops import choice as c", "pass", "c.choose(n)"),
        ("from .ops import choice", "pass", "choice.choose(n)"),
        ("from .ops.choice import choose", "pass", "choose(n)"),
        ("from . import ops", "from .ops import choice", "choice.choose(n)"),
        ("from vllm.ops import choose_again", "pass", "choose_again(n)"),
        ("from vllm.ops import *", "pass", "choose_again(n)"),
        ("import vllm.ops as ops", "pass", "ops.choose_again(n)"),
        ("pass", "from vllm.ops.choice import choose", "choose(n)"),
        ("pass", "import vllm.ops.choice as c", "c.choose(n)"),
        ("pass", "from vllm.ops import choice", "choice.choose(n)"),
        ("pass", "import vllm.ops.choice", "vllm.ops.choice.choose(n)"),
        ("from vllm.ops.choice import choose\npick = choose", "pass", "pick(n)"),
        ("from vllm.ops import choice\npick = choice.choose", "pass", "pick(n)"),
        ("from vllm.ops import choice", "pick = getattr(choice, 'choose')", "pick(n)"),
    ],
)
def test_an_import_of_every_form(top: str, local: str, call: str) -> None:
    files = {
        "vllm/dispatch.py": f"{top}\n\ndef entry(n):\n    {local}\n    return {call}\n",
        "vllm/ops/choice.py": CHOICE,
        "vllm/ops/__init__.py": "from .choice import choose as choose_again\n",
    }
    check(files, "fast", given={"n": "5"})
    check(files, "slow", given={"n": "4"})


def test_an_import_by_name_at_run_time() -> None:
    files = {
        "vllm/dispatch.py": """
        import importlib

        def entry(n):
            return importlib.import_module("vllm.ops.choice").choose(n)
        """,
        "vllm/ops/choice.py": CHOICE,
    }
    check_open(files, "fast", given={"n": "5"})


@pytest.mark.parametrize("import_", ["from .choice import choose", "from ..ops.choice import choose"])
def test_relative_imports_from_below(import_: str) -> None:
    files = {
        "vllm/dispatch.py": "from vllm.ops.other import inner\n\ndef entry(n):\n    return inner(n)\n",
        "vllm/ops/choice.py": CHOICE,
        "vllm/ops/other.py": f"{import_}\n\ndef inner(n):\n    return choose(n)\n",
    }
    check(files, "fast", given={"n": "5"})


def test_a_re_export_of_a_re_export() -> None:
    files = {
        "vllm/dispatch.py": "from vllm.a import choose\n\ndef entry(n):\n    return choose(n)\n",
        "vllm/a/__init__.py": "from vllm.a.b import choose\n",
        "vllm/a/b/__init__.py": "from .c import pick as choose\n__all__ = ['choose']\n",
        "vllm/a/b/c.py": CHOICE.replace("choose", "pick"),
    }
    check(files, "fast", given={"n": "5"})


def test_a_name_that_is_defined_twice_is_the_last_one() -> None:
    source = """
    from vllm.kernels import fast, slow

    def pick():
        return slow()

    def pick():
        return fast()

    def entry():
        return pick()
    """
    check(source, "fast")


def test_a_local_import_hides_the_modules_name() -> None:
    files = {
        "vllm/dispatch.py": """
        from vllm.kernels import slow as run

        def entry():
            from vllm.kernels import fast as run
            return run()
        """
    }
    check(files, "fast")


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("USE = True", "fast"),
        ("USE = False", "slow"),
        ("USE: bool = True", "fast"),
        ("BASE = 4\nUSE = BASE * 2 > 7", "fast"),
        ("USE = not (1 == 2)", "fast"),
        ("A = B = USE = True", "fast"),
        ("USE, REST = False, True", "slow"),
        ("USE = False\nUSE = True", "fast"),
        ("if True:\n    USE = True\nelse:\n    USE = False", "fast"),
        ("from vllm.constants import USE", "fast"),
        ("from vllm import constants\nUSE = constants.USE", "fast"),
        ("def find():\n    return True\n\nUSE = find()", "fast"),
    ],
)
def test_constants_of_a_module(definition: str, expected: str) -> None:
    files = {
        "vllm/dispatch.py": f"from vllm.kernels import fast, slow\n{definition}\n\n"
        "def entry():\n    return fast() if USE else slow()\n",
        "vllm/constants.py": "USE = True\n",
    }
    check(files, expected)


@pytest.mark.parametrize(
    ("module", "setter"),
    [
        ("vllm.dispatch", "def enable():\n    global USE\n    USE = True\n"),
        ("vllm.dispatch", "class Setup:\n    def enable(self):\n        global USE\n        USE = True\n"),
    ],
)
def test_a_flag_that_other_code_sets_is_unknown(module: str, setter: str) -> None:
    source = (
        "from vllm.kernels import fast, slow\nUSE = False\n\n"
        f"{setter}\ndef entry():\n    return fast() if USE else slow()\n"
    )
    route = check(source, BOTH, flags={(module, "USE"): (True, False)})
    assert guard(route, "USE").value == "unknown"
    assert guard(route, "USE").because


def test_a_flag_that_the_way_itself_sets_before() -> None:
    source = """
    from vllm.kernels import fast, slow
    impl = None

    def init():
        global impl
        if impl is not None:
            return
        impl = fast

    def entry():
        init()
        if impl is None:
            return slow()
        return impl()
    """
    route = ask(source)
    # What stands in the slot need not be known by name, but then it is told to be from elsewhere.
    assert "fast" in route.kernels or any(found.external for found in route.reached), told(route)
    assert not route.exact or route.kernels == ("fast",)


ENVS = """
import os
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    VLLM_FAST: bool = False
    VLLM_LIMIT_MB: int = 256

environment_variables: dict[str, Callable[[], Any]] = {
    "VLLM_FAST": lambda: bool(int(os.getenv("VLLM_FAST", "0"))),
    "VLLM_LIMIT_MB": lambda: int(os.getenv("VLLM_LIMIT_MB", "256")),
}

def __getattr__(name: str):
    if name in environment_variables:
        return environment_variables[name]()
    raise AttributeError(name)
"""


@pytest.mark.parametrize(
    ("imports", "test"),
    [
        ("import vllm.envs as envs", "envs.VLLM_FAST"),
        ("from vllm import envs", "envs.VLLM_FAST"),
        ("import os", "os.environ.get('VLLM_FAST') == '1'"),
        ("import os", "os.getenv('VLLM_FAST', '0') == '1'"),
        ("import os", "'VLLM_FAST' in os.environ and os.environ['VLLM_FAST'] == '1'"),
        ("from os import environ", "environ.get('VLLM_FAST', '0') != '0'"),
        ("from os import getenv", "bool(int(getenv('VLLM_FAST', '0')))"),
    ],
)
def test_an_environment_flag_that_nobody_set(imports: str, test: str) -> None:
    files = {
        "vllm/dispatch.py": f"{imports}\nfrom vllm.kernels import fast, slow\n\n"
        f"def entry():\n    if {test}:\n        return fast()\n    return slow()\n",
        "vllm/envs.py": ENVS,
    }
    # Asked about is a server in whose environment nobody set it; the answer must say that it took it so.
    route = check(files, "slow", environment={"VLLM_FAST": (None,)})
    assert any("VLLM_FAST" in found.because and "not set" in found.because for found in route.guards), told(route)


def test_an_environment_flag_that_is_given() -> None:
    files = {
        "vllm/dispatch.py": "import vllm.envs as envs\nfrom vllm.kernels import fast, slow\n\n"
        "def entry():\n    return fast() if envs.VLLM_FAST else slow()\n",
        "vllm/envs.py": ENVS,
    }
    for value, kernels in (("True", {"fast"}), ("False", {"slow"}), ("unknown", BOTH)):
        config = config_of().model_copy(update={"set": (SetValue(name="VLLM_FAST", value=value),)})
        route = ask(files, config=config)
        assert set(route.kernels) == kernels and route.exact is (len(kernels) == 1), told(route)


def test_an_environment_limit_that_is_not_set() -> None:
    files = {
        "vllm/dispatch.py": """
        import os
        import vllm.envs as envs
        from vllm.kernels import fast, slow

        def limit():
            if "VLLM_LIMIT_MB" in os.environ:
                return envs.VLLM_LIMIT_MB * 1024 * 1024
            return 512 * 1024 * 1024

        def entry(n):
            return slow() if n > limit() else fast()
        """,
        "vllm/envs.py": ENVS,
    }
    route = check(files, "fast", given={"n": "300 * 1024 * 1024"}, environment={"VLLM_LIMIT_MB": (None,)})
    assert any("VLLM_LIMIT_MB" in found.because for found in route.guards), told(route)


def test_the_first_module_of_the_scenario_that_has_the_entry_is_taken() -> None:
    files = tree_of({"vllm/new.py": CHOICE, "vllm/old.py": CHOICE.replace("LIMIT = 4", "LIMIT = 8")})
    scenario = scenario_with({"n": "5"}, entry="choose", modules=("vllm.newest", "vllm.old", "vllm.new"))
    route = ask(files, scenario=scenario)
    assert (route.entry, route.entry_path) == ("choose", "vllm/old.py")
    assert route.kernels == ("slow",) and route.exact, told(route)
    assert route.entry_line == 5


def test_an_entry_function_that_moved_is_found() -> None:
    files = tree_of({"vllm/far/away.py": CHOICE, "vllm/talks.py": "# choose is called elsewhere: choose(n)\n"})
    route = ask(files, scenario=scenario_with({"n": "5"}, entry="choose", modules=("vllm.newest",)))
    assert route.entry_path == "vllm/far/away.py"
    assert route.kernels == ("fast",)


def test_a_module_that_only_re_exports_the_entry_function() -> None:
    files = tree_of({"vllm/dispatch.py": "from vllm.ops.choice import choose\n", "vllm/ops/choice.py": CHOICE})
    route = ask(files, scenario=scenario_with({"n": "5"}, entry="choose"))
    assert route.entry_path == "vllm/ops/choice.py" and route.kernels == ("fast",), told(route)


def test_a_callee_that_moved_is_not_invented() -> None:
    # The import says where it is; that another file defines the same name is no evidence.
    files = {
        "vllm/dispatch.py": "from vllm.gone import choose\n\ndef entry(n):\n    return choose(n)\n",
        "vllm/ops/choice.py": CHOICE,
    }
    route = ask(files, {"n": "5"})
    assert not route.exact, told(route)
    assert route.not_understood or any(found.external for found in route.reached), told(route)


def test_modules_that_import_each_other() -> None:
    files = {
        "vllm/dispatch.py": """
        from vllm import back
        from vllm.kernels import fast, slow

        LIMIT = 4

        def entry(n):
            return fast() if back.large(n) else slow()
        """,
        "vllm/back.py": """
        import vllm.dispatch

        def large(n):
            return n > vllm.dispatch.LIMIT
        """,
    }
    check(files, "fast", given={"n": "5"})
    check(files, "slow", given={"n": "4"})


def test_names_that_import_each_other_without_an_end() -> None:
    files = {
        "vllm/dispatch.py": "from vllm.one import pick\n\ndef entry():\n    return pick()\n",
        "vllm/one.py": "from vllm.two import pick\n",
        "vllm/two.py": "from vllm.one import pick\n",
    }
    route = ask(files)
    assert not route.exact and route.kernels == () and route.not_understood, told(route)


def test_files_that_the_answer_depends_on_are_named() -> None:
    files = tree_of(
        {
            "vllm/dispatch.py": "from vllm.ops import choose\n\ndef entry(n):\n    return choose(n)\n",
            "vllm/ops/__init__.py": "from .choice import choose\n",
            "vllm/ops/choice.py": CHOICE,
            "vllm/unrelated.py": "X = 1\n",
        }
    )
    tree = MemoryTree(files)
    route = find_route(tree, scenario=scenario_with({"n": "5"}), config=config_of())
    needed = {"vllm/dispatch.py", "vllm/ops/__init__.py", "vllm/ops/choice.py"}
    assert needed <= set(route.files), sorted(route.files)
    assert "vllm/unrelated.py" not in route.files
    # Every path that was looked at is named, those too that were not there: a history asks no other.
    assert set(tree.read_paths) <= set(route.files)
    for path, oid in route.files.items():
        blob = tree.read(path)
        assert oid == (blob.oid if blob else None), path
    assert route.revision == tree.revision
