"""What ``sparkdiag route`` does once its options are understood: open the source, follow it, tell."""

from sparkdiag.cli import route_asked as typed
from sparkdiag.cli.bisect_search import say
from sparkdiag.cli.failures import print_error
from sparkdiag.cli.route_asked import Asked
from sparkdiag.cli.route_shown import STALL_CODES, columns, show
from sparkdiag.cli.route_source import Source, config_of, opened
from sparkdiag.errors import ExitCode, SparkdiagError
from sparkdiag.reporting.route import route_text
from sparkdiag.reporting.route_document import route_document
from sparkdiag.reproducing.signals import Terminated, sigterm_raises
from sparkdiag.routing.route import find_route


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
