"""Stacks as a picture that can be clicked: outermost frames above, as wide as they were often seen. Pure."""

from dataclasses import dataclass

from markupsafe import Markup

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.call_tree import CallNode, call_tree
from sparkdiag.reporting.pictures.colours import OTHERS, Palette
from sparkdiag.reporting.pictures.layout import WIDE, Layout
from sparkdiag.reporting.pictures.svg import element, hint, number

ROW = 19.0
MOST_BOXES = 1500
MOST_DEPTH = 120
_LETTER = 7.8


@dataclass(frozen=True, slots=True)
class Box:
    """One function on one way; ``x`` and ``width`` are shares of the whole picture."""

    node: CallNode
    depth: int
    x: float
    width: float


def forest(stored: StoredRun, *, function: str | None) -> CallNode:
    """All looks since the prompt was sent; the first level is the process, workers first."""
    seen = stored.observation
    since_s = seen.client.sent.t_s if seen.client.sent is not None else 0.0
    root = CallNode(name="all looks")
    workers = {process.pid for process in seen.workers}
    by_pid: dict[int, list[int]] = {}
    for place, sample in enumerate(seen.samples):
        if sample.ended_s >= since_s:
            by_pid.setdefault(sample.pid, []).append(place)
    for process in sorted(seen.processes, key=lambda one: (one.pid not in workers, one.name, one.pid)):
        samples = (seen.samples[place] for place in by_pid.get(process.pid, ()))
        tree = call_tree(samples, root=f"{process.name} ({process.pid})", function=function)
        if tree.samples:
            root.children[tree.name, ""] = tree
            root.samples += tree.samples
    return root


def boxes(root: CallNode, *, most: int = MOST_BOXES) -> tuple[tuple[Box, ...], int]:
    """Every function with a width, the widest first served, and how many were left out for want of room."""
    made: list[Box] = []
    left = 0
    waiting = [Box(root, 0, 0.0, 1.0)]
    while waiting:
        level: list[Box] = []
        for box in waiting:
            made.append(box)
            x = box.x
            children = list(box.node.children.values()) if box.depth == 0 else box.node.heaviest
            for child in children:
                width = box.width * child.samples / box.node.samples
                level.append(Box(child, box.depth + 1, x, width))
                x += width
        room = most - len(made)
        kept = sorted(level, key=lambda box: -box.width)[: max(0, room)]
        shown = {id(box) for box in kept if box.width >= 1 / 2000 and box.depth <= MOST_DEPTH}
        left += len(level) - len(shown)
        waiting = [box for box in level if id(box) in shown]
    return tuple(made), left


def flame(root: CallNode, *, palette: Palette, label: str, layout: Layout = WIDE) -> Markup:
    """The picture of a ``forest``, or one line that says why there is none."""
    if not root.samples:
        return element("p", "No stack was taken since the prompt was sent.", class_="missing")
    drawn, left = boxes(root)
    depth = max(box.depth for box in drawn) + 1
    parts = [_box(box, root=root, palette=palette, full=layout.width) for box in drawn]
    svg = element(
        "svg",
        hint(label),
        *parts,
        class_="flame",
        role="tree",
        aria_label=label,
        viewBox=f"0 0 {number(layout.width)} {number(depth * ROW + 2)}",
        width=layout.width,
        height=depth * ROW + 2,
        xmlns="http://www.w3.org/2000/svg",
    )
    if not left:
        return svg
    return svg + element("p", f"{left} narrow or deep functions are not drawn.", class_="note")


def _box(box: Box, *, root: CallNode, palette: Palette, full: float) -> Markup:
    node, share = box.node, box.node.samples / root.samples
    x, width = box.x * full, max(box.width * full, 0.5)
    told = f"{node.name}" + (f" ({node.place})" if node.place else "") + f": {node.samples} looks, {share:.1%}"
    if node.own and node.children:
        told += f", {node.own} of them innermost"
    colour = palette.of(node.name)
    class_ = f"c{colour}" if colour != OTHERS else ("process" if box.depth <= 1 else "plain")
    fits = int((width - 6) / _LETTER)
    name = node.name if len(node.name) <= fits else (node.name[: fits - 1] + "…" if fits > 4 else "")
    return element(
        "g",
        hint(told),
        element("rect", x=x, y=box.depth * ROW, width=width, height=ROW - 1, class_=class_),
        element("text", name, x=x + 4, y=box.depth * ROW + 13, class_=f"on-{class_}"),
        class_="box",
        role="treeitem",
        aria_level=box.depth + 1,
        aria_label=told,
        tabindex=0 if box.depth == 0 else -1,
        data_x=f"{box.x:.6f}",
        data_w=f"{box.width:.6f}",
        data_d=box.depth,
        data_name=node.name,
    )
