"""Which processes are one server's."""

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.processes import Role
from sparkdiag.watching.lineage import Relative, Server, members_of, server_of, servers, servers_holding, top_of


def one(pid: int, parent: int, role: Role = "other", **more: object) -> Relative:
    given: dict[str, object] = {"group": (1, 1), "started_at_s": float(pid), **more}
    return Relative(pid=pid, parent_pid=parent, role=role, **given)  # type: ignore[arg-type]


def family(*relatives: Relative) -> dict[int, Relative]:
    return {relative.pid: relative for relative in relatives}


WHOLE = family(
    one(1, 0, group=(0, 0)),
    one(10, 1, group=(10, 10)),  # the user's shell
    one(20, 10, "api_server"),
    one(21, 20, "resource_tracker"),
    one(30, 20, "engine_core"),
    one(40, 30, "worker"),
    one(41, 30, "worker"),
    one(42, 41),  # something that a worker started
)


def test_every_process_leads_to_the_api_server_and_never_above_it() -> None:
    assert {top_of(pid, WHOLE) for pid in (20, 21, 30, 40, 41, 42)} == {20}
    assert top_of(10, WHOLE) is None
    assert servers(WHOLE) == (Server(roots=(20,)),)
    assert members_of(Server(roots=(20,)), WHOLE) == (20, 21, 30, 40, 41, 42)


def test_what_stands_above_one_server_leads_down_to_it_and_above_two_to_none() -> None:
    assert server_of(10, WHOLE) == Server(roots=(20,))
    two = {**WHOLE, **family(one(50, 10, "api_server"))}
    assert server_of(10, two) is None
    assert server_of(50, two) == Server(roots=(50,))


def test_a_script_of_the_users_own_that_started_an_engine_is_its_api_server() -> None:
    assert top_of(31, family(one(30, 1, python=True), one(31, 30, "engine_core"), one(1, 0))) == 30


def test_an_init_that_adopted_an_engine_is_none() -> None:
    adopted = family(one(1, 0, python=True, group=(1, 1)), one(31, 1, "engine_core", group=(9, 9)))
    assert top_of(31, adopted) == 31


def test_sparkdiags_guardian_is_never_the_root() -> None:
    guarded = family(one(5, 1, python=True, ours=True), one(6, 5, "api_server"), one(7, 6, "engine_core"))
    assert top_of(7, guarded) == 6


def test_a_process_that_multiprocessing_is_starting_is_passed_over() -> None:
    starting = family(one(20, 1, "api_server"), one(25, 20, python=True, spawning=True), one(26, 25, "worker"))
    assert top_of(26, starting) == 20


def test_what_a_dead_api_server_left_is_one_server_by_its_process_group() -> None:
    left = family(
        one(1, 0, group=(0, 0)),
        one(30, 1, "engine_core", group=(7, 7)),
        one(40, 30, "worker", group=(7, 7)),
        one(60, 1, "worker", group=(8, 8)),
        one(61, 1, "worker", group=(8, 8)),
    )
    assert servers(left) == (Server(roots=(30,), orphaned=True), Server(roots=(60, 61), orphaned=True))
    assert server_of(61, left) == Server(roots=(60, 61), orphaned=True)


def test_workers_whose_engine_died_stay_with_the_server_of_their_group() -> None:
    halved = family(one(20, 10, "api_server"), one(40, 1, "worker"), one(41, 1, "worker"), one(10, 1), one(1, 0))
    assert servers(halved) == (Server(roots=(20, 40, 41)),)
    assert servers_holding([20], halved) == servers(halved)


def test_a_reused_parent_pid_is_no_parent() -> None:
    reused = family(one(20, 1, "api_server", started_at_s=99.0), one(30, 20, "engine_core", started_at_s=5.0))
    assert top_of(30, reused) == 30


ROLES: st.SearchStrategy[Role] = st.sampled_from(["api_server", "engine_core", "worker", "other", "resource_tracker"])
FAMILIES = st.lists(
    st.builds(
        Relative,
        pid=st.integers(1, 12),
        parent_pid=st.integers(0, 12),
        started_at_s=st.floats(0, 5),
        role=ROLES,
        group=st.tuples(st.integers(0, 2), st.integers(0, 2)),
        python=st.booleans(),
        spawning=st.booleans(),
        ours=st.booleans(),
    ),
    max_size=12,
).map(lambda relatives: family(*relatives))


@given(FAMILIES)
def test_every_top_is_in_exactly_one_server_and_loops_in_the_tree_end(everybody: dict[int, Relative]) -> None:
    roots = [root for server in servers(everybody) for root in server.roots]
    assert sorted(roots) == sorted({top for pid in everybody if (top := top_of(pid, everybody)) is not None})
    for server in servers(everybody):
        assert set(server.roots) <= set(members_of(server, everybody))
        assert not any(everybody[root].ours for root in server.roots)
