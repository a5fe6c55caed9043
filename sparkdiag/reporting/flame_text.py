"""Samples as a tree in plain text: share, samples, calls; what a flame graph shows where there is only text. Pure.

Calls without a branch between them stand on one line, small branches are summed. Names are made visible by whoever
puts the text on a page or a terminal; here they only lose line ends.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkdiag.harmless.printable import cut, printable
from sparkdiag.reporting.call_tree import CallNode

_JOIN = " > "
_MOST_INDENTS = 10
"""Branches deeper than this are no longer indented further: the name needs the room."""
_LEAST_NAME = 40
_MOST_NAME = 60
_LINES_A_CHAIN = 2
ITSELF = "(itself)"


@dataclass(eq=False, slots=True)
class _Branch:
    """Calls one inside the other with nothing beside them, then what they branch into."""

    names: list[str]
    samples: int
    depth: int
    branches: list["_Branch"] = field(default_factory=list)
    shown: list["_Branch"] = field(default_factory=list)


def flame_text(tree: CallNode, *, most_lines: int, columns: int) -> str:
    """At most ``most_lines`` lines (two at least) of ``columns``; heaviest branches first. Empty without a sample."""
    if not tree.samples:
        return ""
    root = _branches(tree)
    lead = len(_numbers(tree.samples, tree.samples, digits=len(str(tree.samples))))
    lines = _lines_of(root, lead=lead, columns=columns)
    left = max(most_lines, 2) - lines
    waiting = [(-branch.samples, place, root, branch) for place, branch in enumerate(root.branches)]
    place = len(waiting)
    parents = {id(root)} if root.branches else set()
    while waiting:
        _, _, parent, branch = heapq.heappop(waiting)
        needed = _lines_of(branch, lead=lead, columns=columns)
        # Each parent that hides a branch has a line for it; so may the one that is opened here.
        is_last = len(parent.shown) + 1 == len(parent.branches)
        if left - needed < len(parents) - is_last + bool(branch.branches):
            continue
        left -= needed
        parent.shown.append(branch)
        if branch.branches:
            parents.add(id(branch))
        if len(parent.shown) == len(parent.branches):
            parents.discard(id(parent))
        for child in branch.branches:
            heapq.heappush(waiting, (-child.samples, place, branch, child))
            place += 1
    return "\n".join(_drawn(root, total=tree.samples, lead=lead, columns=columns))


def _branches(tree: CallNode) -> _Branch:
    """The tree with chains as one branch each, heaviest first; without recursion however deep."""
    root = _Branch([tree.name], tree.samples, 0)
    waiting = [(root, tree)]
    while waiting:
        branch, node = waiting.pop()
        while node is not tree and len(node.children) == 1 and not node.own:
            (node,) = node.children.values()
            branch.names.append(node.name)
        for child in node.heaviest:
            branch.branches.append(_Branch([child.name], child.samples, branch.depth + 1))
            waiting.append((branch.branches[-1], child))
        if node.own and node.children:
            branch.branches.append(_Branch([ITSELF], node.own, branch.depth + 1))
        branch.branches.sort(key=lambda one: -one.samples)
    return root


def _drawn(root: _Branch, *, total: int, lead: int, columns: int) -> list[str]:
    lines: list[str] = []
    digits = len(str(total))
    waiting: list[_Branch | tuple[int, int, int]] = [root]
    while waiting:
        branch = waiting.pop()
        if isinstance(branch, tuple):
            count, samples, depth = branch
            others = f"… {count} other{'' if count == 1 else 's'}"
            lines.append(cut(_numbers(samples, total, digits=digits) + _indent(depth) + others, columns))
            continue
        begin = _numbers(branch.samples, total, digits=digits) + _indent(branch.depth)
        first, *more = _chain(branch.names, width=_room(branch, lead, columns))
        lines += [begin + first, *(" " * len(begin) + line for line in more)]
        hidden = [one for one in branch.branches if one not in branch.shown]
        if hidden:
            waiting.append((len(hidden), sum(one.samples for one in hidden), branch.depth + 1))
        waiting += reversed(branch.shown)
    return lines


def _numbers(samples: int, total: int, *, digits: int) -> str:
    return f"{samples / total:7.1%} {samples:>{digits}}  "


def _indent(depth: int) -> str:
    return "  " * min(depth, _MOST_INDENTS)


def _room(branch: _Branch, lead: int, columns: int) -> int:
    return max(columns - lead - len(_indent(branch.depth)), _LEAST_NAME)


def _lines_of(branch: _Branch, *, lead: int, columns: int) -> int:
    return len(_chain(branch.names, width=_room(branch, lead, columns)))


def _chain(names: Sequence[str], *, width: int) -> list[str]:
    """The innermost calls of a chain, as many as two lines hold; how many more there are stands before them."""
    lines: list[list[str]] = [[]]
    for kept, name in enumerate(reversed(names)):
        more = f"… {len(names) - kept} calls"
        text = printable(name, limit=min(_MOST_NAME, width - len(more) - 2 * len(_JOIN)))
        last = len(lines) == _LINES_A_CHAIN
        room = width - (len(more) + len(_JOIN) if last and kept + 1 < len(names) else 0)
        if lines[0] and len(_JOIN.join([text, *lines[0]])) + len(_JOIN) > room:
            if last:
                lines[0].insert(0, more)
                break
            lines.insert(0, [])
        lines[0].insert(0, text)
    *upper, lowest = map(_JOIN.join, lines)
    return [*(line + _JOIN.rstrip() for line in upper), lowest]
