"""The lab's history as data: what the stream says, without running git."""

import hashlib
import json
import tomllib
from pathlib import Path

import pytest

from sparkdiag.lab import history
from sparkdiag.scenario.model import Scenario

ROOT = Path(__file__).parents[3]
TREE = Path(history.__file__).parent / "source" / "tree"


@pytest.fixture(scope="module")
def plan():
    return tomllib.loads((TREE.parent / "history.toml").read_text(encoding="utf-8"))


def trees(plan):
    """Files of each commit by name, played forward as git would."""
    made, by_name = [], {}
    for commit in plan["commit"]:
        parent = by_name[commit["parents"][0]] if "parents" in commit else (made[-1] if made else {})
        files = parent | {path: history._contents(path, origin) for path, origin in commit["files"].items()}
        made.append(files)
        by_name[commit.get("name")] = files
        if "tag" in commit:
            by_name[commit["tag"]] = files
    return made, by_name


def test_the_last_commit_is_exactly_the_tree(plan):
    on_disk = {
        path.relative_to(TREE).as_posix(): path.read_bytes()
        for path in TREE.rglob("*")
        if path.is_file() and not {"__pycache__", ".ruff_cache"} & set(path.parts)
    }
    assert trees(plan)[0][-1] == on_disk


def test_the_turning_points_differ_where_they_should(plan):
    made, by_tag = trees(plan)
    source = {tag: {path: text.decode() for path, text in files.items()} for tag, files in by_tag.items() if tag}
    gate = "if clean_logits and q_scale is None"
    fallbacks, entry = "sparklab/sm12x_deep_gemm_fallbacks.py", "sparklab/sparse_attn_indexer.py"
    assert "fp8_fp4_mqa_topk_indices" not in source["fallback-only"][entry]
    assert all("fp8_fp4_mqa_topk_indices" in source[tag][entry] for tag in ("fused", "incident", "gate-dropped"))
    assert all(gate in source[tag][fallbacks] for tag in ("fused", "incident"))
    assert gate not in source["fallback-only"][fallbacks]
    assert gate not in source["gate-dropped"][fallbacks]
    assert "import top_k_per_row" in source["incident"]["sparklab/warmup.py"]
    assert "sparklab.top_k import" in source["does-not-start"]["sparklab/warmup.py"]
    assert sum("sparklab.top_k import" in files["sparklab/warmup.py"].decode() for files in made) == 1


def test_every_python_file_of_every_commit_compiles(plan):
    for files in trees(plan)[0]:
        for path, text in files.items():
            if path.endswith(".py"):
                compile(text, path, "exec")


def test_between_fused_and_the_fix_lie_unrelated_commits_and_a_merge(plan):
    tags = [commit.get("tag") for commit in plan["commit"]]
    assert tags.index("fused") > 2
    assert tags.index("gate-dropped") - tags.index("fused") > 6
    assert tags.index("fused") < tags.index("does-not-start") < tags.index("incident") < tags.index("gate-dropped")
    assert len(tags) > tags.index("gate-dropped") + 1
    assert any(len(commit.get("parents", ())) == 2 for commit in plan["commit"])


def test_the_stream_is_whole_and_always_the_same():
    stream = history.commit_stream()
    assert stream.endswith(b"done\n")
    history.commit_stream.cache_clear()
    assert hashlib.sha256(history.commit_stream()).digest() == hashlib.sha256(stream).digest()


def test_the_scenario_names_the_suspect_and_the_sizes_of_the_model():
    scenario = Scenario.model_validate(tomllib.loads((ROOT / "scenarios" / "lab.toml").read_text(encoding="utf-8")))
    sizes: dict[str, object] = {}
    exec((TREE / "sparklab" / "sizes.py").read_text(encoding="utf-8"), sizes)
    fallbacks = (TREE / "sparklab" / "sm12x_deep_gemm_fallbacks.py").read_text(encoding="utf-8")
    assert scenario.suspect.commit == history.SUSPECT_COMMIT
    assert set(scenario.suspect.paths) <= {path.relative_to(TREE).as_posix() for path in TREE.rglob("*.py")}
    assert (scenario.work.layers, scenario.work.heads) == (sizes["NUM_LAYERS"], sizes["NUM_HEADS"])
    assert f"SCORE_BUDGET_BYTES = {scenario.work.budget_bytes}\n" in fallbacks
    config = json.loads((TREE / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["num_hidden_layers"] == sizes["NUM_LAYERS"]
    for watched in scenario.watch:
        module = TREE / (watched.modules[0].replace(".", "/") + ".py")
        assert f"def {watched.function}(" in module.read_text(encoding="utf-8")
