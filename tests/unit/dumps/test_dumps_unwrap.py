"""What trackers, terminals and logs do to a dump on its way is undone, and what they say of the process is kept."""

import html

import pytest

from sparkdiag.dumps.markup import MOST_CHARACTERS
from sparkdiag.dumps.prefixes import streams_of
from sparkdiag.dumps.read import read_dumps
from sparkdiag.evidence.dump import Pasted, ProcessDump
from tests.unit.dumps.paste_case import ENGINE, LOCALS, aligned, prefixed, without_indent, worker


def only(text: str) -> ProcessDump:
    pasted = read_dumps(text, source="paste")
    assert pasted.refused is None
    (look,) = pasted.looks
    return look


def stacks(pasted: Pasted | ProcessDump) -> list[list[tuple[str, str | None, int | None]]]:
    looks = pasted.looks if isinstance(pasted, Pasted) else (pasted,)
    return [[(one.function, one.path, one.line) for one in thread.frames] for look in looks for thread in look.threads]


PLAIN = only(ENGINE)

WRAPPED = {
    "crlf": ENGINE.replace("\n", "\r\n"),
    "carriage returns": ENGINE.replace("\n", "\r"),
    "no indentation": without_indent(ENGINE),
    "tabs": ENGINE.replace("    ", "\t"),
    "blank lines inside": ENGINE.replace("\n", "\n\n"),
    "columns": aligned(ENGINE),
    "columns by tabs": ENGINE.replace(" (", "\t(")
    .replace("Thread-1\t", "Thread-1 ")
    .replace("840\t", "840 ")
    .replace("1279\t", "1279 "),
    "no-break spaces": ENGINE.replace("    ", "\xa0\xa0\xa0\xa0"),
    "fence": f"Hello,\n\n```text\n{ENGINE}```\nThanks",
    "fence with words behind it": f"```{ENGINE}```",
    "tildes": f"~~~\n{ENGINE}~~~\n",
    "details": f"<details><summary>the dump</summary>\n\n```\n{ENGINE}```\n\n</details>\n",
    "details in a line": f"<details>\n<summary>dump</summary><pre><code>{ENGINE}</code></pre></details>",
    "entities": html.escape(ENGINE),
    "entities twice": html.escape(html.escape(ENGINE)),
    "quote": prefixed(ENGINE, "> "),
    "quote of a quote": prefixed(ENGINE, "> > "),
    "ticks": "\n".join(f"`{line}`" if line else "" for line in ENGINE.split("\n")),
    "bullets": "\n".join(f"- `{line.strip()}`" if line else "" for line in ENGINE.split("\n")),
    "numbered frames": "\n".join(
        f"{number}. {line.strip()}" if line.startswith("  ") else line for number, line in enumerate(ENGINE.split("\n"))
    ),
    "colours": ENGINE.replace("Thread", "\x1b[1;32mThread\x1b[0m").replace("(vllm", "\x1b[2m(vllm"),
    "colours without escape": ENGINE.replace("Thread ", "[1mThread [0m").replace("Process", "[33mProcess[0m"),
    "colours in words": ENGINE.replace("Process", "^[[33mProcess^[[0m"),
    "byte order mark": "\ufeff" + ENGINE,
    "nul": "\0".join(ENGINE),
    "comment": ENGINE.replace("shm_broadcast.py:698)", "shm_broadcast.py:698)   <-- it is always here"),
    "arrow": ENGINE.replace("    MessageQueue.acq", "  → MessageQueue.acq"),
    "bold": ENGINE.replace('Thread 840 (active+gil): "MainThread"', '**Thread 840 (active+gil): "MainThread"**'),
    "typed": f"$ sudo py-spy dump --pid 840\n{ENGINE}root@node:~# ",
    "compose": prefixed(ENGINE, "engine-1  | "),
    "compose with a stamp": prefixed(ENGINE, "engine-1  | 2026-07-12T10:00:00.123Z "),
    "kubernetes": prefixed(ENGINE, "2026-07-12T10:00:00.123456789Z stdout F "),
    "pod": prefixed(ENGINE, "[pod/engine-0/main] "),
    "vllm": prefixed(ENGINE, "(EngineCore pid=840) "),
    "vllm with a level": prefixed(ENGINE, "(EngineCore pid=840) INFO 07-12 10:00:00 [core.py:12] "),
    "old vllm": prefixed(ENGINE, "INFO 07-12 10:00:00 core.py:12] "),
    "python logging": prefixed(ENGINE, "2026-07-12 10:00:00,123 - watchdog - ERROR - "),
    "level": prefixed(ENGINE, "2026-07-12 10:00:00 INFO "),
    "journal": prefixed(ENGINE, "Jul 12 10:00:00 node-3 vllm[99]: "),
    "torchrun": prefixed(ENGINE, "[rank0]: "),
    "mpirun": prefixed(ENGINE, "[1,0]<stdout>:"),
    "ray": prefixed(ENGINE, "(EngineCoreActor pid=840, ip=10.0.0.2) "),
    "pdsh": prefixed(ENGINE, "node-3: "),
    "time": prefixed(ENGINE, "[10:00:00] "),
    "surrogates": ENGINE + "\ud800\n",
}


@pytest.mark.parametrize("name", WRAPPED)
def test_the_same_stack_however_it_was_pasted(name: str) -> None:
    look = only(WRAPPED[name])
    assert stacks(look) == stacks(PLAIN)
    assert [(one.name, one.os_thread_id, one.state, one.owns_gil) for one in look.threads] == [
        ("MainThread", 840, "active", True),
        ("Thread-1 (process_input_sockets)", 1279, "idle", False),
    ]
    assert (look.pid, look.title, look.python, look.role) == (840, "VLLM::EngineCore", "3.12.3", "engine_core")
    assert not any("not understood" in note for note in look.notes if name not in ("typed", "surrogates"))


@pytest.mark.parametrize("name", ["compose", "no indentation", "tabs", "vllm with a level", "crlf", "details"])
def test_locals_survive_the_same_way(name: str) -> None:
    wrap = {
        "compose": lambda text: prefixed(text, "engine-1  | "),
        "no indentation": without_indent,
        "tabs": lambda text: text.replace("    ", "\t"),
        "vllm with a level": lambda text: prefixed(text, "(Worker_TP0_DCP0 pid=2182) INFO 07-12 10:00:00 [a.py:1] "),
        "crlf": lambda text: text.replace("\n", "\r\n"),
        "details": lambda text: f"<details>\n\n```\n{text}```\n</details>",
    }[name]
    look = only(wrap(LOCALS))
    wanted = {"num_rows": 3276, "head_start": 49, "k_start": 5121, "clean_logits": False}
    assert look.threads[0].frames[0].locals == wanted
    assert [frame.name for frame in look.threads[0].frames][1:] == ["worker_busy_loop", "worker_main", "<module>"]


HEADLESS = "\n".join(worker(3).split("\n")[3:])


@pytest.mark.parametrize(
    ("prefix", "pid", "role", "label", "host"),
    [
        ("(Worker_TP3 pid=77) ", 77, "worker", "TP3", None),
        ("(Worker_TP3_DCP1 pid=77) ", 77, "worker", "TP3_DCP1", None),
        ("(VllmWorker TP3 pid=77) ", 77, "worker", "TP3", None),
        ("(VllmWorker rank=3 pid=77) ", 77, "worker", "TP3", None),
        ("(EngineCore_DP1 pid=77) ", 77, "engine_core", "DP1", None),
        ("(APIServer pid=77) ", 77, "api_server", "", None),
        ("(RayWorkerWrapper pid=77, ip=10.0.0.2) ", 77, "worker", "", "10.0.0.2"),
        ("sglang-1  | ", 1003, "worker", "", "sglang-1"),
        ("[rank3]: ", 1003, "worker", "TP3", None),
        ("[2026-07-12 10:00:00 DP1 TP3 EP3] ", 1003, "worker", "DP1_TP3_EP3", None),
        ("vllm-0 | (Worker_TP3 pid=77) ", 77, "worker", "TP3", "vllm-0"),
        ("[pod/vllm-0/main] (Worker_TP3 pid=77) ", 77, "worker", "TP3", "vllm-0/main"),
    ],
)
def test_a_prefix_names_the_process(prefix: str, pid: int, role: str, label: str, host: str | None) -> None:
    look = only(prefixed(HEADLESS, prefix))
    assert (look.pid, look.role, look.ranks.label, look.host) == (pid, role, label, host)


def test_a_process_dumped_by_another_is_not_given_its_name() -> None:
    look = only(prefixed(worker(1, pid=4711), "(EngineCore pid=840) "))
    assert (look.pid, look.role, look.ranks.label) == (4711, "worker", "TP1")


@pytest.mark.parametrize(
    ("above", "pid", "role", "label", "host"),
    [
        ("=== PID 4711 ===", 4711, "worker", "", None),
        ("----- pid 4711 (vllm) -----", 4711, "worker", "", None),
        ("$ py-spy dump --pid 4711", 4711, "worker", "", None),
        ("root@node-7:~# py-spy dump -p 4711", 4711, "worker", "", None),
        ("[2026-07-12 10:00:00 TP1] Pyspy dump for PID 4711 (py-spy dump --pid 4711):", 4711, "worker", "", None),
        ("### Rank 5", 1003, "worker", "TP5", None),
        ("TP5 DP1:", 1003, "worker", "DP1_TP5", None),
        ("VLLM::Worker_TP5_DCP1", 1003, "worker", "TP5_DCP1", None),
        ("sglang::scheduler_TP5", 1003, "worker", "TP5", None),
        ("<summary>Worker_TP5</summary>", 1003, "worker", "TP5", None),
        ("################# user@node-7 #################", 1003, "worker", "", "node-7"),
        ("we run TP8 with 16 ranks on 2 nodes, and it hangs every night", 1003, "worker", "", None),
    ],
)  # fmt: skip
def test_what_stands_above_names_the_process(above: str, pid: int, role: str, label: str, host: str | None) -> None:
    look = only(f"{above}\n\n{HEADLESS}")
    assert (look.pid, look.role, look.ranks.label) == (pid, role, label)
    if host is not None:
        assert look.host == host


@pytest.mark.parametrize(
    ("first", "then", "apart_s"),
    [
        ("2026-07-12 10:00:00", "2026-07-12 10:00:30", 30),
        ("2026-07-12T23:59:50Z", "2026-07-13T00:00:20Z", 30),
        ("2026-07-12T10:00:00+02:00", "2026-07-12T08:00:30Z", 30),
        ("=== 23:59:50 ===", "=== 00:00:20 ===", 30),
        ("Sun Jul 12 10:00:00 UTC 2026", "Sun Jul 12 10:05:00 UTC 2026", 300),
        ("--- t=0s ---", "--- t=12.5s ---", 12.5),
        ("dump at 1783850400", "dump at 1783850430.5", 30.5),
        ("INFO 07-12 10:00:00 [a.py:1] dump 1", "INFO 07-12 10:00:30 [a.py:1] dump 2", 30),
    ],
)
def test_stamps_between_dumps_give_the_time_between_them(first: str, then: str, apart_s: float) -> None:
    pasted = read_dumps(f"{first}\n{ENGINE}\n{then}\n{ENGINE}", source="paste")
    one, two = pasted.looks
    assert one.pid == two.pid == 840
    assert one.at is not None
    assert one.at_s is not None
    assert two.at_s is not None
    assert two.at_s - one.at_s == pytest.approx(apart_s)


def test_stamps_before_every_line_do_too() -> None:
    text = prefixed(ENGINE, "2026-07-12T10:00:00Z ") + "\n" + prefixed(ENGINE, "2026-07-12T10:00:30Z ")
    one, two = read_dumps(text, source="paste").looks
    assert (two.at_s or 0) - (one.at_s or 0) == 30


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("noise", ["noise\n", "\n", "x" * 5000 + "\n"])
def test_of_a_very_large_text_both_ends_are_read_and_it_says_so(noise: str, first: bool) -> None:
    much = noise * (MOST_CHARACTERS // len(noise) * 2)
    pasted = read_dumps(ENGINE + much if first else much + ENGINE, source="paste")
    assert stacks(pasted) == stacks(PLAIN)
    assert "the first 2 and the last 6 MiB were read" in pasted.notes[0]


def test_lines_without_prefixes_are_one_stream() -> None:
    (stream,) = streams_of(ENGINE.split("\n"))
    assert stream.lines == ENGINE.split("\n")
    assert not stream.identity.known


def test_a_secret_in_a_command_line_is_not_kept() -> None:
    text = ENGINE.replace("VLLM::EngineCore", "python -m vllm serve --api-key sk-abcdef0123456789abcdef --port 8000")
    assert "sk-abcdef" not in read_dumps(text, source="paste").model_dump_json()


def test_hostile_names_are_made_visible() -> None:
    text = ENGINE.replace("MainThread", "Main\u202eThread").replace("acquire_read", "acq\u200buire")
    shown = read_dumps(text, source="paste").model_dump_json()
    assert "\u202e" not in shown
    assert "\u200b" not in shown
