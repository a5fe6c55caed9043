"""Where wheels come from, as pip and uv are configured."""

from pathlib import Path

import pytest

from sparkdiag.environment.sources import (
    folder_of,
    matching_torch_wheel,
    parse_pip_config,
    parse_uv_config,
    pip_config_files,
    read_sources,
    uv_config_files,
)

WHEEL = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"


def test_pip_conf() -> None:
    text = "[global]\nfind-links = /a\n   file:///b\nindex-url = https://one/simple\n[install]\nindex-url=https://two/simple\n"
    settings = parse_pip_config(text)
    assert settings.find_links == ("/a", "file:///b") and settings.index_url == "https://two/simple"


def test_broken_files_count_as_empty() -> None:
    assert parse_pip_config("find-links = x\n").find_links == ()
    assert parse_uv_config("= [").find_links == ()


def test_uv_toml() -> None:
    text = """
find-links = ["/a"]
[pip]
find-links = ["/b"]
[[index]]
url = "/flat"
format = "flat"
[[index]]
url = "https://mirror/simple"
"""
    settings = parse_uv_config(text)
    assert settings.find_links == ("/a", "/b", "/flat") and settings.index_url == "https://mirror/simple"


@pytest.mark.parametrize(
    ("name", "version", "tag", "machine", "fits"),
    [
        (WHEEL, "2.13.0+cpu", "cp311", "x86_64", True),
        (WHEEL.replace("+", "%2B"), "2.13.0+cpu", "cp311", "x86_64", True),
        (WHEEL, "2.13.0", "cp311", "x86_64", False),
        (WHEEL, "2.13.0+cpu", "cp312", "x86_64", False),
        (WHEEL, "2.13.0+cpu", "cp311", "aarch64", False),
        (WHEEL.replace("manylinux_2_28", "win_amd64"), "2.13.0+cpu", "cp311", "amd64", False),
        ("torch.whl", "2.13.0+cpu", "cp311", "x86_64", False),
    ],
)
def test_matching_wheels(name: str, version: str, tag: str, machine: str, fits: bool) -> None:
    found = matching_torch_wheel((name,), version=version, python_tag=tag, machine=machine)
    assert (found == name) is fits


def test_folders_and_pages() -> None:
    assert folder_of("file:///w%20x") == Path("/w x")
    assert folder_of("/w") == Path("/w")
    assert folder_of("https://host/page") is None


def test_files_are_read_weakest_first() -> None:
    files = pip_config_files(
        {"XDG_CONFIG_DIRS": "/s1:/s2", "PIP_CONFIG_FILE": "/mine"}, home=Path("/h"), prefix=Path("/v")
    )
    assert [str(file) for file in files] == [
        "/s2/pip/pip.conf", "/s1/pip/pip.conf", "/etc/pip.conf", "/h/.pip/pip.conf", "/h/.config/pip/pip.conf",
        "/v/pip.conf", "/mine",
    ]  # fmt: skip
    assert pip_config_files({"PIP_CONFIG_FILE": "/dev/null"}, home=Path("/h"), prefix=Path("/v")) == ()
    assert uv_config_files({"UV_NO_CONFIG": "1"}, home=Path("/h")) == ()
    assert uv_config_files({"UV_CONFIG_FILE": "/u"}, home=Path("/h")) == (Path("/u"),)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / WHEEL).touch()
    (wheels / "six-1.whl").touch()
    conf = tmp_path / ".config" / "pip" / "pip.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(f"[global]\nfind-links = {wheels} https://u:p@page/\nindex-url = https://mirror/simple\n")
    return tmp_path


def test_reading_a_machine(home: Path) -> None:
    environ = {"XDG_CONFIG_DIRS": str(home / "none"), "PIP_CONFIG_FILE": str(home / "none.conf")}
    sources = read_sources(environ, home=home, prefix=home)
    folder, page = sources.find_links
    assert (folder.source, folder.wheels) == ("pip", (WHEEL,))
    assert page.wheels is None
    assert sources.pip_index_url == "https://mirror/simple"


def test_uv_knows_its_own_index_and_variables_win(home: Path) -> None:
    environ = {"XDG_CONFIG_DIRS": str(home / "none"), "UV_DEFAULT_INDEX": "https://x", "PIP_FIND_LINKS": "/nowhere"}
    sources = read_sources(environ, home=home, prefix=home)
    assert sources.pip_index_url is None
    assert [place.location for place in sources.find_links] == ["/nowhere"]
