"""What to type to get the same again: sparkdiag's own command, the same at this very revision, the server alone."""

from shlex import join, quote

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.phrases import again_command
from sparkdiag.reporting.safe_text import code, fence

_PROBE = "SPARKDIAG_"
_REVISION_OPTIONS = ("--rev", "--env")


def exact_command(stored: StoredRun, *, at_most: int) -> str:
    """Markdown; empty where neither a command nor a server is known."""
    blocks = []
    typed = again_command(stored)
    if typed is not None:
        pinned = pinned_command(stored)
        blocks.append(f"With sparkdiag {code(stored.record.sparkdiag_version, at_most=40)}, as it was typed:")
        blocks.append(fence(typed, info="sh", at_most=at_most))
        if pinned is not None:
            blocks += ["The same, held at this very revision:", fence(pinned, info="sh", at_most=at_most)]
    server = server_command(stored)
    if server:
        how = "that was looked at" if stored.record.watched else "as it was started, its variables by allow-list"
        blocks += [f"The server {how}:", fence(server, info="sh", at_most=at_most)]
    return "\n\n".join(blocks)


def pinned_command(stored: StoredRun) -> str | None:
    """With the revision of the lab, whose default moves with sparkdiag; None where the command names one itself."""
    record = stored.record
    sha = record.environment.get("revision_sha")
    names = [word.split("=", 1)[0] for word in record.command]
    if record.environment.get("kind") != "lab" or not isinstance(sha, str) or {*names} & {*_REVISION_OPTIONS}:
        return None
    command = list(record.command)
    rest = command.index("--") if "--" in command else len(command)
    return join([*command[:rest], "--rev", sha, *command[rest:]])


def server_command(stored: StoredRun) -> str:
    """Variables and argv; what only sparkdiag's own probe reads is left out."""
    if not stored.record.server_argv:
        return ""
    given = sorted(stored.record.server_env.items())
    env = [f"{name}={quote(value)}" for name, value in given if not name.startswith(_PROBE)]
    return " \\\n".join([*env, join(stored.record.server_argv)])
