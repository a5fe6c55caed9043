"""What Python does that is easily overlooked: an answer may say that it does not understand, not something wrong."""

from __future__ import annotations

import pytest

from tests.unit.routing.odd_case import say_nothing_wrong

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
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_wrong_is_said(name: str) -> None:
    say_nothing_wrong(PROGRAMS[name], on_attribute="attribute of a parameter" in name)
