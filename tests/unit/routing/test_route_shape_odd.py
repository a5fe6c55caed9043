"""What Python does that is easily overlooked: an answer may say that it does not understand, not something wrong."""

from __future__ import annotations

import pytest

from tests.fakes.source_trees import ask
from tests.unit.routing.shape_case import Open, device_of, never_wrong, outcomes, told

HEAD = """
import contextlib
import enum
import functools
import torch
from vllm.kernels import fast, slow, other

FLAG = False
LIMIT = 512
"""

PROGRAMS = {
    "a global that a callee sets": """
def enable():
    global FLAG
    FLAG = True

def entry(a):
    if a:
        enable()
    fast() if FLAG else slow()
""",
    "a dictionary that changes": """
def entry(a):
    options = {"use": False}
    options["use"] = a
    fast() if options["use"] else slow()
""",
    "a dictionary that a callee changes": """
def enable(options):
    options["use"] = True

def entry(a):
    options = {"use": False}
    enable(options)
    fast() if options["use"] else slow()
""",
    "a dictionary of the module that changes": """
OPTIONS = {"use": False}

def enable():
    OPTIONS["use"] = True

def entry(a):
    if a:
        enable()
    fast() if OPTIONS["use"] else slow()
""",
    "a list that grows": """
def entry(a):
    found = []
    if a:
        found.append(1)
    fast() if found else slow()
""",
    "a list under two names": """
def entry(a):
    found = []
    same = found
    same.append(a)
    fast() if len(found) == 1 else slow()
""",
    "a list of the module that grows": """
FOUND = []

def entry(a):
    FOUND.append(a)
    fast() if FOUND else slow()
""",
    "an attribute that is set": """
class Box:
    pass

def entry(a):
    box = Box()
    box.use = a
    fast() if box.use else slow()
""",
    "an attribute of a parameter that is set": """
def entry(a):
    a.use = False
    fast() if a.use else slow()
""",
    "an attribute of a function": """
def helper():
    return 1

helper.use = True

def entry(a):
    fast() if getattr(helper, "use", False) else slow()
""",
    "a class attribute that is set": """
class Config:
    use = False

def entry(a):
    Config.use = a
    fast() if Config.use else slow()
""",
    "a default that was bound when the function was made": """
SIZE = 1

def size(n=SIZE):
    return n

SIZE = 2

def entry(a):
    fast() if size() == 1 else slow()
""",
    "a default that is shared between calls": """
def count(seen=[]):
    seen.append(1)
    return len(seen)

def entry(a):
    count()
    fast() if count() == 2 else slow()
""",
    "a lambda that sees the last value": """
def entry(a):
    n = 1
    large = lambda: n > 4
    n = 9
    fast() if large() else slow()
""",
    "lambdas made in a loop": """
def entry(a):
    made = [lambda: i for i in range(3)]
    fast() if made[0]() == 2 else slow()
""",
    "a decorator that puts another function there": """
def swap(function):
    return slow

@swap
def pick():
    return fast()

def entry(a):
    return pick()
""",
    "a decorator that asks first": """
def gated(function):
    def wrapper(use):
        if not use:
            return slow()
        return function(use)
    return wrapper

@gated
def pick(use):
    return fast()

def entry(a):
    return pick(a)
""",
    "a decorator that runs a kernel before": """
def warmed(function):
    @functools.wraps(function)
    def wrapper(*args):
        other()
        return function(*args)
    return wrapper

@warmed
def pick(use):
    return fast()

def entry(a):
    return pick(a)
""",
    "a decorated test": """
def negated(function):
    def wrapper(*args):
        return not function(*args)
    return wrapper

@negated
def large(n):
    return n

def entry(a):
    fast() if large(a) else slow()
""",
    "a generator that nobody runs": """
def chunks():
    slow()
    yield 1

def entry(a):
    chunks()
    fast()
""",
    "a generator that is run": """
def chunks():
    slow()
    yield 1

def entry(a):
    for chunk in chunks():
        fast()
""",
    "a generator that is true": """
def flag():
    yield False

def entry(a):
    fast() if flag() else slow()
""",
    "a coroutine that nobody awaits": """
class Later:
    def __await__(self):
        yield

def entry(a):
    made = (slow() for _ in ())
    fast()
""",
    "or gives the value": """
def entry(a):
    n = a or LIMIT
    fast() if n == 512 else slow()
""",
    "and gives the value": """
def entry(a):
    n = a and 4
    fast() if n == 4 else slow()
""",
    "a condition as a number": """
def entry(a):
    n = (a is None) + 1
    fast() if n == 2 else slow()
""",
    "true is one": """
def entry(a):
    fast() if True == 1 and 1 in (True, 2) else slow()
    one = 1
    other() if one is True else None
""",
    "none is not zero": """
def entry(a):
    x = None
    fast() if x == 0 else slow()
""",
    "a tuple is no list": """
def entry(a):
    fast() if (1, 2) == [1, 2] else slow()
""",
    "swapped names": """
def entry(a):
    x, y = 1, 2
    x, y = y, x
    fast() if x == 2 else slow()
""",
    "a local that hides a constant": """
def entry(a):
    LIMIT = 4
    fast() if LIMIT == 4 else slow()
""",
    "a parameter that hides a function": """
def run(fast):
    return fast()

def entry(a):
    return run(slow)
""",
    "a comprehension has its own names": """
def entry(a):
    n = 1
    squares = [n for n in range(5)]
    fast() if n == 1 else slow()
""",
    "a loop variable stays": """
def entry(a):
    n = 0
    for n in range(5):
        pass
    fast() if n == 4 else slow()
""",
    "a loop that does not run": """
def entry(a):
    n = 7
    for n in ():
        pass
    fast() if n == 7 else slow()
""",
    "an error before the assignment": """
def broken(a):
    if a:
        raise NotImplementedError("x")

def entry(a):
    x = 1
    try:
        broken(a)
        x = 2
    except NotImplementedError:
        pass
    fast() if x == 2 else slow()
""",
    "an error after the assignment": """
def broken(a):
    if a:
        raise NotImplementedError("x")

def entry(a):
    x = 1
    try:
        x = 2
        broken(a)
    except NotImplementedError:
        x += 1
    fast() if x == 2 else slow()
""",
    "finally has the last word": """
def tried(a):
    try:
        return True
    finally:
        if a:
            return False

def entry(a):
    fast() if tried(a) else slow()
""",
    "else of a try": """
def entry(a):
    try:
        n = 1
    except ValueError:
        slow()
    else:
        fast()
""",
    "an error that is swallowed": """
def entry(a):
    with contextlib.suppress(NotImplementedError):
        if a:
            raise NotImplementedError("x")
        fast()
    slow()
""",
    "an error of the base class": """
class Mine(RuntimeError):
    pass

def entry(a):
    try:
        raise Mine("x")
    except RuntimeError:
        return fast()
    return slow()
""",
    "not implemented is a runtime error": """
def entry(a):
    try:
        raise NotImplementedError("x")
    except RuntimeError:
        return fast()
    return slow()
""",
    "an error in the arithmetic": """
def entry(a):
    try:
        n = 1 // 0
    except ZeroDivisionError:
        return fast()
    return slow()
""",
    "a missing key": """
def entry(a):
    table = {}
    try:
        table["x"]
    except KeyError:
        return fast()
    return slow()
""",
    "a missing attribute": """
def entry(a):
    try:
        torch.ops.not_there
        found = None.x
    except AttributeError:
        return fast()
    return slow()
""",
    "an enum": """
class Mode(enum.Enum):
    FP8 = 1
    FP4 = 2

def entry(a):
    mode = Mode.FP8 if a else Mode.FP4
    fast() if mode is Mode.FP8 else slow()
    if Mode.FP8 == Mode.FP4:
        other()
""",
    "what an instance is": """
def entry(a):
    if isinstance(a, tuple):
        a = a[0]
    fast() if a is None else slow()
""",
    "what has an attribute": """
def entry(a):
    fast() if hasattr(a, "append") else slow()
""",
    "a slice of a tuple": """
def entry(a):
    q = (1, None, 3)
    fast() if q[1:][0] is None and q[:-1] == (1, None) else slow()
""",
    "a range that holds": """
def entry(a):
    fast() if 4 in range(0, 10, 2) and 5 not in range(0, 10, 2) else slow()
""",
    "a text that holds": """
def entry(a):
    name = "fp8_e4m3"
    fast() if "fp8" in name and name.startswith("fp8") else slow()
""",
    "negative numbers": """
def entry(a):
    fast() if -7 // 2 == -4 and -7 % 3 == 2 and abs(-3) == 3 and -(-8 // 3) == 3 else slow()
""",
    "two functions under one condition": """
if LIMIT > 100:
    def pick():
        return fast()
else:
    def pick():
        return slow()

def entry(a):
    return pick()
""",
    "a function that another one replaces": """
def pick():
    return slow()

def replace():
    global pick
    pick = fast

def entry(a):
    if a:
        replace()
    return pick()
""",
    "an import that a definition replaces": """
def fast():
    return slow()

def entry(a):
    return fast()
""",
    "a while that ends by break": """
def entry(a):
    n = 0
    while True:
        n += 1
        if n == 3:
            break
    fast() if n == 3 else slow()
""",
    "a nested loop that continues": """
def entry(a):
    found = 0
    for i in range(3):
        for j in range(3):
            if j > i:
                break
            found += 1
        else:
            other()
            continue
        if found > 2:
            fast()
    slow() if found == 6 else None
""",
    "a method that calls another": """
class Layer:
    use = True

    def run(self):
        return self.pick()

    def pick(self):
        return fast() if self.use else slow()

class Sub(Layer):
    def pick(self):
        return slow()

def entry(a):
    return (Sub() if a else Layer()).run()
""",
    "a callable object": """
class Run:
    def __call__(self):
        return fast()

def entry(a):
    return Run()()
""",
    "an object that is false": """
class Nothing:
    def __bool__(self):
        return False

def entry(a):
    fast() if Nothing() else slow()
""",
    "a property that runs a kernel": """
class Layer:
    @property
    def size(self):
        return fast()

def entry(a):
    Layer().size
    slow()
""",
    "a name that is not bound": """
def entry(a):
    try:
        missing
    except NameError:
        return fast()
    return slow()
""",
    "map and filter": """
def entry(a):
    list(map(lambda x: fast(), (1, 2)))
    for x in filter(None, (0, 0)):
        slow()
""",
    "sorted and key": """
def entry(a):
    sorted((2, 1), key=lambda x: fast() and 1 or 1)
""",
    "a partial": """
def pick(use, more):
    return fast() if use else slow()

def entry(a):
    return functools.partial(pick, True)(more=1)
""",
    "recursion that changes its argument": """
def down(n):
    if n == 0:
        return False
    if n == 1:
        return True
    return down(n - 2)

def entry(a):
    fast() if down(7) else slow()
""",
    "a cached answer": """
STATE = {"n": 0}

@functools.cache
def first():
    STATE["n"] += 1
    return STATE["n"]

def entry(a):
    first()
    fast() if first() == 1 else slow()
""",
    "an attribute of what differs": """
class Box:
    pass

def pick(a):
    return Box() if a else other()

def entry(a):
    pick(a).size = 1
    fast() if a else slow()
""",
    "a text with a call inside": """
def pick(a):
    if a:
        raise NotImplementedError("x")
    return 1

def entry(a):
    text = f"{pick(a)}"
    fast() if a else slow()
""",
    "a text with a call inside that goes two ways": """
def pick(a):
    return 1 if a else other()

def entry(a):
    text = f"{pick(a)}"
    fast() if a else slow()
""",
    "a comprehension that asks": """
def entry(a):
    made = [fast() for x in (1, 2) if a]
    pairs = {x: a and other() for x in (1, 2)}
    slow()
""",
    "an error in what is asserted": """
def broken():
    raise NotImplementedError("x")

def entry(a):
    assert broken()
    slow()
""",
    "exec and eval": """
def entry(a):
    use = eval("not a")
    exec("slow()")
    fast() if use else slow()
""",
    "setattr by name": """
import vllm.dispatch as me

def entry(a):
    setattr(me, "FLAG", True)
    fast() if FLAG else slow()
""",
    "a module's attribute set from elsewhere": """
import vllm.dispatch as me

def entry(a):
    me.FLAG = a
    fast() if FLAG else slow()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_wrong_is_said(name: str) -> None:
    source = HEAD + PROGRAMS[name]
    open_: Open = {"a": ("True", "False", "0", "None", "[1]", "{}", "(None, 1)")}
    if "attribute of a parameter" in name:
        open_ = {"a": ("__import__('types').SimpleNamespace(use=True)",)}
    runs = list(outcomes(source, {}, open_, devices=(device_of("sm121", "cuda"),), flags={}, environment={}))
    route = ask(source)
    never_wrong(route, runs)
    for given in ("True", "False"):
        runs = list(outcomes(source, {"a": given}, {}, devices=(device_of("sm121", "cuda"),), flags={}, environment={}))
        if "attribute of a parameter" not in name:
            route = ask(source, {"a": given})
            never_wrong(route, runs)
            assert route.kernels or route.not_understood or route.raises or not any(run.kernels for run in runs), told(
                route
            )
