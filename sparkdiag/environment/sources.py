"""Where pip and uv are told to find packages on this machine: find-links, and a mirror that only pip knows.

pip's configuration is read from its files and variables (https://pip.pypa.io/en/stable/topics/configuration/): a child
``pip config list`` would need pip, which an environment made by uv does not have. uv reads its own configuration
itself; here it is read only to know whether a torch wheel lies there.
"""

import configparser
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from sparkdiag.evidence.base import Value

PIP_SECTIONS = ("global", "install")
MAX_CONFIG_BYTES = 256 * 1024
PYPI = "https://pypi.org/simple"
"""What uv asks where nothing is configured."""


class FindLinks(Value):
    """One place with wheels."""

    location: str
    """As configured: a folder, a ``file:`` URL, or a page's URL (may hold credentials: never shown)."""
    source: Literal["pip", "uv"]
    wheels: tuple[str, ...] | None = None
    """Names of the torch wheels in it; None when it is no folder here."""


class PackageSources(Value):
    """Everything configured that matters for building an environment."""

    find_links: tuple[FindLinks, ...] = ()
    pip_index_url: str | None = None
    """pip's index where it has one configured and uv has none; may hold credentials."""
    index_urls: tuple[str, ...] = ()
    """Every index uv will ask for a package, the one that wins first; may hold credentials."""


class ToolSettings(Value):
    """The part of one configuration file that counts."""

    find_links: tuple[str, ...] = ()
    index_url: str | None = None


def parse_pip_config(text: str) -> ToolSettings:
    """Read one pip.conf; a broken one counts as empty (pip itself will complain about it). Pure."""
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error:
        return ToolSettings()
    links: tuple[str, ...] = ()
    index: str | None = None
    for section in PIP_SECTIONS:
        if parser.has_section(section):
            links = tuple(parser.get(section, "find-links", fallback="").split()) or links
            index = parser.get(section, "index-url", fallback="").strip() or index
    return ToolSettings(find_links=links, index_url=index)


def parse_uv_config(text: str) -> ToolSettings:
    """Read one uv.toml: top level, ``[pip]``, and ``[[index]]`` with ``format = "flat"``. Pure."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return ToolSettings()
    pip = found.get("pip", {})
    pip = pip if isinstance(pip, dict) else {}
    indexes = [index for index in _list(found.get("index")) if isinstance(index, dict) and "url" in index]
    flat = [str(index["url"]) for index in indexes if index.get("format") == "flat"]
    links = [str(link) for link in (*_list(found.get("find-links")), *_list(pip.get("find-links")), *flat)]
    default = [str(index["url"]) for index in indexes if index.get("format") != "flat"]
    url = found.get("index-url") or pip.get("index-url") or (default[0] if default else None)
    return ToolSettings(find_links=tuple(links), index_url=str(url) if url else None)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def pip_config_files(environ: Mapping[str, str], *, home: Path, prefix: Path) -> tuple[Path, ...]:
    """Files pip reads on Linux and macOS, weakest first. Pure."""
    if environ.get("PIP_CONFIG_FILE") == "/dev/null":
        return ()
    system = [Path(folder) / "pip" / "pip.conf" for folder in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")]
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
    files = [*reversed(system), Path("/etc/pip.conf"), home / ".pip" / "pip.conf", user, prefix / "pip.conf"]
    if "PIP_CONFIG_FILE" in environ:
        files.append(Path(environ["PIP_CONFIG_FILE"]))
    return tuple(files)


def uv_config_files(environ: Mapping[str, str], *, home: Path) -> tuple[Path, ...]:
    """Files uv reads outside a project, weakest first. Pure."""
    if environ.get("UV_NO_CONFIG"):
        return ()
    if "UV_CONFIG_FILE" in environ:
        return (Path(environ["UV_CONFIG_FILE"]),)
    system = [Path(folder) / "uv" / "uv.toml" for folder in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")]
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "uv" / "uv.toml"
    return (Path("/etc/uv/uv.toml"), *reversed(system), user)


def read_sources(environ: Mapping[str, str], *, home: Path, prefix: Path) -> PackageSources:
    """Read every configuration, and list the torch wheels of find-links that are folders here."""
    pip = _strongest(parse_pip_config(_read(path)) for path in pip_config_files(environ, home=home, prefix=prefix))
    uv = _strongest(parse_uv_config(_read(path)) for path in uv_config_files(environ, home=home))
    pip_links = tuple(environ.get("PIP_FIND_LINKS", "").split()) or pip.find_links
    uv_links = tuple(filter(None, environ.get("UV_FIND_LINKS", "").split(","))) or uv.find_links
    uv_index = any(environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX")) or uv.index_url
    pip_index = environ.get("PIP_INDEX_URL") or pip.index_url
    links = [FindLinks(location=link, source="uv", wheels=_torch_wheels(link)) for link in uv_links]
    links += [
        FindLinks(location=link, source="pip", wheels=_torch_wheels(link)) for link in pip_links if link not in uv_links
    ]
    pip_index = None if uv_index else pip_index
    indexes = uv_index_urls(environ, configured=uv.index_url, pip_index=pip_index)
    return PackageSources(find_links=tuple(links), pip_index_url=pip_index, index_urls=indexes)


def uv_index_urls(environ: Mapping[str, str], *, configured: str | None, pip_index: str | None) -> tuple[str, ...]:
    """The indexes uv asks, the first that knows a package wins (https://docs.astral.sh/uv/concepts/indexes/). Pure."""
    extra = f"{environ.get('UV_INDEX', '')} {environ.get('UV_EXTRA_INDEX_URL', '')}".split()
    given = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    urls = [re.sub(r"^[\w.-]+=(?=\w+:)", "", url) for url in extra]
    return tuple(dict.fromkeys((*urls, given or configured or pip_index or PYPI)))


def _strongest(settings: Any) -> ToolSettings:
    """Later files win key by key, as in pip and uv."""
    links: tuple[str, ...] = ()
    index: str | None = None
    for one in settings:
        links, index = one.find_links or links, one.index_url or index
    return ToolSettings(find_links=links, index_url=index)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_CONFIG_BYTES).decode(errors="replace")
    except OSError:
        return ""


def folder_of(location: str) -> Path | None:
    """The folder a find-links entry names; None for a page on a server. Pure."""
    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme and "://" in location else Path(location).expanduser()


def _torch_wheels(location: str) -> tuple[str, ...] | None:
    folder = folder_of(location)
    if folder is None:
        return None
    try:
        return tuple(sorted(path.name for path in folder.glob("torch-*.whl")))
    except OSError:
        return ()


def matching_torch_wheel(names: tuple[str, ...], *, version: str, python_tag: str, machine: str) -> str | None:
    """The wheel of exactly this torch for this Python and machine. Pure."""
    for name in names:
        parts = unquote(name).removesuffix(".whl").split("-")
        if len(parts) < 5 or parts[0] != "torch" or parts[1] != version or parts[-3] != python_tag:
            continue
        if re.search(rf"(linux|macosx).*_{re.escape(machine)}$", parts[-1]):
            return name
    return None
