"""What is typed after ``sparkdiag route``: read, or refused with cause and remedy before anything is opened."""

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sparkdiag.cli import route_asked
from sparkdiag.cli.app import app
from sparkdiag.cli.route_asked import Asked, check
from sparkdiag.errors import UsageError
from sparkdiag.evidence.route import SetValue

REFUSED = [
    (("--arch", "foo"), "--arch: found 'foo'; allowed: a CUDA capability such as sm90 or sm121, or unknown"),
    (("--arch", "sm12x"), "--arch: found 'sm12x'"),
    (("--arch", ""), "--arch: found '', in which a value is empty"),
    (("--dcp", "0"), "--dcp: found '0'; allowed: an integer from 1 to 1024, or unknown"),
    (("--dcp", "-1"), "--dcp: found '-1'"),
    (("--dcp", "9" * 40), "--dcp: found '999"),
    (("--dcp", "²"), "--dcp: found '²'"),
    (("--cache", "int4"), "--cache: found 'int4'; allowed: fp8, fp4, or unknown"),
    (("--platform", "tpu"), "--platform: found 'tpu'; allowed: cuda, rocm, xpu, cpu, or unknown"),
    (("--phase", "both"), "--phase: found 'both'; allowed: prefill, decode"),
    (("--set", "x"), "--set: found 'x'; needed is NAME=VALUE"),
    (("--set", "x="), "--set: found 'x='"),
    (("--set", "a b=1"), "--set: found 'a b=1'"),
    (("--set", "x=1", "--set", "x=2"), "--set names 'x' twice"),
    (("--prompt-tokens", "0"), "--prompt-tokens: found 0; allowed: an integer from 1 to 10,000,000"),
    (("--heads", "100000"), "--heads: found 100000; allowed: an integer from 1 to 65,536"),
    (("--dcp", "1,2"), "--dcp '1,2' is a list, and one route is asked for"),
    (("--arch", "sm90,sm121"), "--arch 'sm90,sm121' is a list"),
    (("--cache", "fp8,fp4"), "--cache 'fp8,fp4' is a list"),
    (("--rev", "a,b"), "--rev 'a,b' is a list"),
    (("--matrix", "--dcp", "1,,2"), "--dcp: found '1,,2', in which a value is empty"),
    (("--matrix", "--dcp", "1,x"), "--dcp: found 'x'"),
    (("--history", "a..b", "--rev", "c"), "--history names both ends by itself, --rev another revision"),
    (("--history", "a..b", "--matrix"), "--history and --matrix are two questions"),
    (("--history", "a..b", "--fail-on-stall"), "--fail-on-stall is about a revision"),
    (("--history", "a..b", "--execute"), "--execute runs one revision"),
    (("--matrix", "--execute"), "--execute runs one revision"),
    (("--env", "lab"), "--env is the interpreter of --execute"),
    (("--json", "--format", "md"), "--json and --format md are two forms"),
    (("--platform", "cpu", "--arch", "sm90"), "--arch is a CUDA capability, and --platform cpu has none"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[" ".join(options)[:40] for options, _ in REFUSED])
def test_what_makes_no_sense_is_refused_with_cause_and_remedy(options: tuple[str, ...], message: str) -> None:
    refused = CliRunner().invoke(app, ["route", "--repo", "/nonexistent", *options])
    assert isinstance(refused.exception, UsageError), refused.exception
    assert refused.exception.message.startswith(message)
    assert refused.exception.remedy
    assert "\n" not in refused.exception.message


def test_a_matrix_that_nobody_could_read_is_refused() -> None:
    many = ",".join(str(size) for size in range(1, 1001))
    with pytest.raises(UsageError, match=r"--matrix would have 3,000 cells; allowed: 2,000"):
        check(Asked(matrix=True, dcp=many, rev="a,b,c"))
    check(Asked(matrix=True, dcp=many, rev="a,b"))


def test_lists_are_read_once_each_in_the_order_typed() -> None:
    asked = Asked(matrix=True, dcp="4, 1,4,unknown", arch="sm_90a,SM121,unknown", cache="fp4,fp8", rev="b,a,b")
    check(asked)
    assert route_asked.sizes(asked) == (4, 1, None)
    assert route_asked.architectures(asked) == ("sm90", "sm121", None)
    assert route_asked.caches(asked) == ("fp4", "fp8")
    assert route_asked.revisions(asked) == ("b", "a")


def test_nothing_typed_is_nothing_said() -> None:
    asked = Asked()
    check(asked)
    assert (route_asked.sizes(asked), route_asked.architectures(asked), route_asked.caches(asked)) == ((), (), ())
    assert (route_asked.platform(asked), route_asked.phase(asked), route_asked.revisions(asked)) == (
        "cuda",
        "prefill",
        (),
    )


def test_unknown_leaves_open_what_has_a_default() -> None:
    assert route_asked.platform(Asked(platform="unknown")) is None
    assert route_asked.caches(Asked(cache="unknown")) == (None,)
    assert route_asked.sizes(Asked(dcp="unknown")) == (None,)


def test_a_name_is_set_to_what_stands_after_the_first_equals_sign() -> None:
    asked = Asked(set=("chunk.local_total_seq_lens = 0", "mode='a=b'", "clean_logits=unknown"))
    assert route_asked.set_values(asked) == (
        SetValue(name="chunk.local_total_seq_lens", value="0"),
        SetValue(name="mode", value="'a=b'"),
        SetValue(name="clean_logits", value="unknown"),
    )


def test_a_capability_that_is_not_known_is_asked_about_and_said_to_be_unusual() -> None:
    found = route_asked.architectures(Asked(arch="sm112"))
    assert found == ("sm112",)
    assert route_asked.unusual(found) == ("sm112",)
    assert route_asked.unusual(("sm121", None)) == ()


def test_the_help_shows_options_in_groups_each_option_once() -> None:
    shown = CliRunner().invoke(app, ["route", "--help"], terminal_width=80).stdout
    headings = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "Which source:",
        "Which configuration:",
        "Many at once:",
        "Beside what really runs:",
        "How it is told:",
        "Options:",
    ]
    options = [line.split()[0] for line in shown.splitlines() if line.startswith("  --")]
    assert len(options) == len(set(options))
    assert {"--repo", "--rev", "--dcp", "--arch", "--matrix", "--history", "--execute", "--fail-on-stall"} <= set(
        options
    )


@pytest.mark.parametrize(
    ("option", "typed", "offered"),
    [
        ("scenario", "sm12", ["sm12x-mqa-prefill"]),
        ("arch", "sm12", ["sm120", "sm121"]),
        ("platform", "c", ["cuda", "cpu"]),
        ("cache", "fp", ["fp8", "fp4"]),
        ("phase", "", ["prefill", "decode"]),
        ("dcp", "", ["1", "2"]),
        ("rev", "fu", ["fused"]),
    ],
)
def test_the_shell_completes_values(option: str, typed: str, offered: list[str]) -> None:
    command = get_command(app).commands["route"]  # type: ignore[attr-defined]
    (parameter,) = [one for one in command.params if one.name == option]
    context = command.make_context("route", [], resilient_parsing=True)
    assert [item.value for item in parameter.shell_complete(context, typed)] == offered
