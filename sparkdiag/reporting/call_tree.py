"""Samples as one tree of calls, outermost frame first: what flame graphs, in text or to click, are drawn from. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sparkdiag.evidence.stacks import StackSample, ThreadStack


@dataclass(slots=True)
class CallNode:
    """A function on the way from the outermost frame; one node for all its lines."""

    name: str
    place: str = ""
    """File, without the line."""
    samples: int = 0
    """In which the function is on the stack here."""
    own: int = 0
    """In which it is innermost."""
    children: dict[tuple[str, str], "CallNode"] = field(default_factory=dict)

    @property
    def heaviest(self) -> list["CallNode"]:
        """Children, most samples first, then by name."""
        return sorted(self.children.values(), key=lambda node: (-node.samples, node.name, node.place))

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "CallNode"]]:
        """Every node with its depth (0 is this one), heaviest first, without recursion however deep."""
        waiting = [(depth, self)]
        while waiting:
            at, node = waiting.pop()
            yield at, node
            waiting += [(at + 1, child) for child in reversed(node.heaviest)]


def working_thread(sample: StackSample, *, function: str | None) -> ThreadStack | None:
    """The thread with ``function`` on its stack, else the main one."""
    if function is not None:
        for thread in sample.threads:
            if thread.find(function) is not None:
                return thread
    return sample.main_thread


def call_tree(samples: Iterable[StackSample], *, root: str, function: str | None) -> CallNode:
    """The working threads of all usable samples under one node called ``root``."""
    tree = CallNode(name=root)
    for sample in samples:
        thread = working_thread(sample, function=function) if sample.usable else None
        if thread is None or not thread.frames:
            continue
        node = tree
        node.samples += 1
        for frame in reversed(thread.frames):
            key = (frame.function, frame.short_filename or frame.filename)
            child = node.children.get(key)
            if child is None:
                child = node.children[key] = CallNode(name=key[0], place=key[1])
            child.samples += 1
            node = child
        node.own += 1
    return tree
