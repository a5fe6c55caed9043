"""What ``sparkdiag route`` does once its options are understood: open the source, follow it, tell."""

import re

from sparkdiag.cli import route_asked as typed
from sparkdiag.cli.failures import print_error
from sparkdiag.cli.route_asked import Asked
from sparkdiag.cli.route_shown import STALL_CODES, columns, show
from sparkdiag.cli.route_source import Source, config_of, opened
from sparkdiag.cli.talk import say
from sparkdiag.errors import ExitCode, SparkdiagError
from sparkdiag.evidence.route import Route
from sparkdiag.reporting.route import route_text
from sparkdiag.reporting.route_document import route_document
from sparkdiag.reproducing.signals import Terminated, sigterm_raises
from sparkdiag.routing.route import find_route
from sparkdiag.routing.source.source_tree import SourceTree


def answer(asked: Asked) -> ExitCode:
    """Follow what was asked, and print it."""
    for arch in typed.unusual(typed.architectures(asked)):
        say(f"{arch} is no CUDA capability known here; it is asked about as written")
    try:
        with sigterm_raises(), opened(asked) as source:
            if asked.matrix or asked.history is not None:
                from sparkdiag.cli import route_many

                return route_many.matrix(asked, source) if asked.matrix else route_many.history(asked, source)
            return _one(asked, source)
    except (KeyboardInterrupt, Terminated) as stop:
        code = ExitCode.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else ExitCode.TERMINATED
        say("interrupted; nothing was changed")
        if asked.as_json:
            print_error(SparkdiagError("interrupted", remedy="the same command again"), exit_code=code)
        return code


def _one(asked: Asked, source: Source) -> ExitCode:
    tree = source.tree((*typed.revisions(asked), source.default)[0])
    found = find_route(tree, scenario=source.scenario, config=config_of(asked, source.scenario))
    for name in unmentioned(found, tree):
        say(f"no file on the way holds {name}, so --set {name}=… decides nothing")
    subject = source.subject(found.revision)
    ran = None
    if asked.execute:
        from sparkdiag.cli.route_executed import executed

        ran = executed(asked, source, tree, found)

    def page() -> str:
        from sparkdiag.reporting.route_markdown import render_route

        return render_route(found, subject=subject, executed=ran)

    show(
        asked,
        document=lambda: route_document(found, subject=subject, executed=ran),
        page=page,
        text=lambda: route_text(found, columns=columns(), subject=subject, executed=ran),
    )
    return STALL_CODES[found.stall_path] if asked.fail_on_stall else ExitCode.DONE


def unmentioned(found: Route, tree: SourceTree) -> tuple[str, ...]:
    """The names of ``--set`` that stand in none of the files that the answer was read from: slips of the keyboard."""
    texts = [blob.text for path in found.files if (blob := tree.read(path)) is not None]
    names = (one.name for one in found.config.set)
    return tuple(name for name in names if not any(_word(name).search(text) for text in texts))


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(name.rpartition('.')[2])}\b")
