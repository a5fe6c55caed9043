from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.reporting.call_tree import CallNode, call_tree
from sparkdiag.reporting.flame_text import ITSELF, flame_text


def tree_of(*stacks: str) -> CallNode:
    """Stacks as ``a b c``, outermost first."""
    return call_tree(
        [
            StackSample(
                pid=1,
                started_s=0,
                ended_s=0,
                threads=(
                    ThreadStack(
                        frames=tuple(Frame(function=name, filename="f.py", line=1) for name in stack.split()[::-1])
                    ),
                ),
            )
            for stack in stacks
        ],
        root="all workers",
        function=None,
    )


def test_chains_stand_on_one_line_and_branches_below_them_with_their_shares() -> None:
    tree = tree_of(*["main loop step torch"] * 3, "main loop wait")
    assert flame_text(tree, most_lines=20, columns=80).splitlines() == [
        " 100.0% 4  all workers",
        " 100.0% 4    main > loop",
        "  75.0% 3      step > torch",
        "  25.0% 1      wait",
    ]


def test_samples_in_a_caller_itself_are_not_lost() -> None:
    text = flame_text(tree_of("main torch", "main", "main"), most_lines=20, columns=80)
    assert f"  66.7% 2      {ITSELF}" in text.splitlines()


def test_a_long_chain_keeps_its_innermost_calls() -> None:
    text = flame_text(tree_of(" ".join(f"function_{depth}" for depth in range(60))), most_lines=20, columns=80)
    assert text.splitlines()[1].startswith(" 100.0% 1    … 5")
    assert text.endswith("function_58 > function_59")


def test_what_does_not_fit_is_summed_beside_its_siblings() -> None:
    tree = tree_of(*["main a"] * 5, *["main b"] * 3, "main c", "main d", "main e")
    assert flame_text(tree, most_lines=4, columns=80).splitlines() == [
        " 100.0% 11  all workers",
        " 100.0% 11    main",
        "  45.5%  5      a",
        "  54.5%  6      … 4 others",
    ]


def test_no_sample_is_no_tree() -> None:
    assert flame_text(CallNode(name="all workers"), most_lines=9, columns=80) == ""


def test_a_recursion_of_thousands_of_calls_is_drawn() -> None:
    deep = " ".join(["f"] * 3000)
    text = flame_text(tree_of(deep, deep + " g", deep + " h x"), most_lines=9, columns=80)
    assert "calls > f" in text
    assert len(text.splitlines()) <= 9


NAMES = st.text(st.characters(exclude_categories=["Cs", "Z"]), min_size=1, max_size=90)


@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=30).map(" ".join).filter(str.split), min_size=1, max_size=25),
    st.integers(2, 40),
    st.integers(70, 120),
)
def test_it_stays_within_lines_and_columns_and_says_only_what_can_be_seen(
    stacks: list[str], most_lines: int, columns: int
) -> None:
    lines = flame_text(tree_of(*stacks), most_lines=most_lines, columns=columns).splitlines()
    assert 1 <= len(lines) <= most_lines
    assert all(len(line) <= columns and line.isprintable() for line in lines)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=40))
def test_the_leaves_of_a_whole_tree_are_all_its_samples(stacks: list[str]) -> None:
    rows = flame_text(tree_of(*stacks), most_lines=10_000, columns=200).splitlines()
    depths = [len(row) - len(row[row.index("%") + 1 :].lstrip(" 0123456789")) for row in rows]
    counts = [int(row.split("%")[1].split()[0]) for row in rows]
    leaves = [
        count for place, count in enumerate(counts) if place + 1 == len(rows) or depths[place + 1] <= depths[place]
    ]
    assert sum(leaves) == len(stacks)
