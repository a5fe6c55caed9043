"""What happened when, as instants of a trace: phases, the request, the verdict, notes. Pure."""

from typing import Any

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.harmless.printable import printable
from sparkdiag.reporting.phrases import headline, verdict_sentence
from sparkdiag.reporting.safe_text import without_home
from sparkdiag.reporting.timeline_rows import thinned
from sparkdiag.reporting.viewers.events import Track, moment_us
from sparkdiag.reporting.viewers.looks import shown

_TEXT_CHARS = 500
_MOST_NOTES = 5_000


def moments(stored: StoredRun, track: Track) -> list[dict[str, Any]]:
    """On a thread of their own each: what sparkdiag did, the request, the notes."""
    events: list[dict[str, Any]] = []
    for thread, found in (("phases", _phases(stored)), ("request", _request(stored)), ("notes", _notes(stored))):
        tid, named = track.thread(thread)
        told = [(at_us, name, text) for at_s, name, text in found if (at_us := moment_us(at_s)) is not None]
        events += named if told else []
        events += [
            track.instant(tid, name, at_us=at_us, args={"text": text} if text else {}) for at_us, name, text in told
        ]
    return events


def _text(text: str) -> str:
    return printable(without_home(text), limit=_TEXT_CHARS)


def _phases(stored: StoredRun) -> list[tuple[float | None, str, str]]:
    return [(event.t_s, event.phase, _text(event.detail)) for event in thinned(stored.phases, _MOST_NOTES)]


def _request(stored: StoredRun) -> list[tuple[float | None, str, str]]:
    client, verdict = stored.observation.client, stored.record.verdict
    found: list[tuple[float | None, str, str]] = []
    if client.sent is not None:
        found.append((client.sent.t_s, "prompt sent", f"{client.sent.tokens} tokens"))
    found.append((client.first_token_s, "first token", ""))
    if client.end is not None:
        found.append((client.end.t_s, f"response {client.end.how}", _text(client.end.error or "")))
    if verdict is not None:
        at_s = verdict.decided_at_s if verdict.decided_at_s is not None else stored.observation.now_s
        where = f" in {shown(verdict.function)}" if verdict.function else ""
        found.append((at_s, f"verdict: {shown(headline(stored))}{where}", _text(verdict_sentence(stored))))
    if stored.observation.server_exit is not None:
        ended = stored.observation.server_exit
        found.append((ended.at_s, "server ended", _text(ended.how)))
    return found


def _notes(stored: StoredRun) -> list[tuple[float | None, str, str]]:
    return [(note.t_s, shown(note.source) or "note", _text(note.text)) for note in thinned(stored.notes, _MOST_NOTES)]
