"""How many rows an indexer call of this revision gets."""

from sparkdiag.evidence.route import RouteConfig
from sparkdiag.routing.reading.pass_through import row_limit
from sparkdiag.routing.source.program import Program
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.routing.values.given import chunks_of, keys_at
from sparkdiag.scenario.model import Scenario

SCORE_BYTES = 4


def rows_of(tree: SourceTree, scenario: Scenario, config: RouteConfig) -> int | None:
    """Rows of a call in the last chunk where the revision splits it by its logits limit; None where it does not."""
    if config.phase != "prefill":
        return None
    limit = row_limit(Program(tree), scenario.route, config)
    if limit is None:
        return None
    keys = keys_at(config, chunks_of(config) - 1)
    return min(config.chunk_tokens, config.prompt_tokens, max(1, limit[1] // SCORE_BYTES // keys))
