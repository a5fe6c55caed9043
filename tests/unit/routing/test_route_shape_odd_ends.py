"""Errors, ends, classes and callables that are easily overlooked: as ``test_route_shape_odd``, by running each."""

from __future__ import annotations

import pytest

from tests.unit.routing.odd_case import say_nothing_wrong

PROGRAMS = {
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
    say_nothing_wrong(PROGRAMS[name], on_attribute="attribute of a parameter" in name)
