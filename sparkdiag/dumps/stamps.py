"""Time stamps beside stacks, as logs, ``date`` and people write them, on one clock where they allow it. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

Clock = Literal["date", "year-less", "time", "relative"]
_LONGEST = 300
_HALF_A_DAY_S = 43_200.0
_DAY_S = 86_400.0
_ISO = re.compile(
    r"(?<!\d)(?P<day>\d{4}[-/]\d\d[-/]\d\d)[T _](?P<time>\d\d:\d\d:\d\d)(?P<part>[.,]\d{1,9})?"
    r"(?P<zone>Z|[ ]?[+-]\d\d:?\d\d\b)?"
)
_LOG = re.compile(r"(?<![\d-])(?P<day>\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d)(?P<part>[.,]\d{1,6})?")
_DATE = re.compile(
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? (?:(?P<month>[A-Z][a-z]{2})[a-z]{0,6} +(?P<day>\d{1,2})"
    r"|(?P<day_first>\d{1,2}) (?P<month_behind>[A-Z][a-z]{2})[a-z]{0,6}(?: \d{4})?),? +"
    r"(?P<time>\d\d:\d\d:\d\d)(?: [AP]M)?"
    r"(?: [A-Z]{1,5}| [+-]\d{4})?(?: (?P<year>\d{4}))?"
)
_SYSLOG = re.compile(r"\b(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d)")
_TIME = re.compile(r"(?<![\d:.-])(?P<time>\d\d:\d\d:\d\d)(?P<part>[.,]\d{1,9})?(?![\d:])")
_EPOCH = re.compile(r"(?<![\d.])(?P<seconds>1[5-9]\d{8}(?:\.\d{1,9})?)(?![\d.])")
_RELATIVE = re.compile(
    r"(?<![\w.])(?:[tT] ?[=:+] ?|\+ ?|after |at )(?P<number>\d{1,6}(?:\.\d{1,6})?) ?"
    r"(?P<unit>s|sec|seconds|min|minutes|m)(?![\w/])"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A moment: as written, and in seconds on the clock that it is of."""

    text: str
    clock: Clock
    seconds: float


def stamp_in(text: str) -> Stamp | None:
    """The first time stamp in a line, if there is one."""
    text = text[:_LONGEST]
    if ":" not in text and not any(char.isdigit() for char in text):
        return None
    try:
        return _iso(text) or _log(text) or _date(text) or _time(text) or _rest(text)
    except (ValueError, OverflowError):  # the 31st of February
        return None


def _iso(text: str) -> Stamp | None:
    match = _ISO.search(text)
    if match is None:
        return None
    zone = (match["zone"] or "").strip()
    offset_s = 0.0
    if zone and zone != "Z":
        digits = zone[1:].replace(":", "")
        offset_s = (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1 if zone[0] == "-" else 1)
    moment = datetime.fromisoformat(f"{match['day'].replace('/', '-')}T{match['time']}").replace(tzinfo=UTC)
    return Stamp(match[0], "date", moment.timestamp() + _part(match["part"]) - offset_s)


def _log(text: str) -> Stamp | None:
    match = _LOG.search(text)
    if match is None:
        return None
    moment = datetime.fromisoformat(f"2000-{match['day']}T{match['time']}").replace(tzinfo=UTC)
    return Stamp(match[0], "year-less", moment.timestamp() + _part(match["part"]))


def _date(text: str) -> Stamp | None:
    match = _DATE.search(text) or _SYSLOG.search(text)
    if match is None:
        return None
    groups = match.groupdict()
    month, day = groups["month"] or groups["month_behind"], int(groups["day"] or groups["day_first"])
    if month not in _MONTHS:
        return None
    year = groups.get("year")
    hour, minute, second = map(int, match["time"].split(":"))
    moment = datetime(int(year or 2000), _MONTHS.index(month) + 1, day, hour, minute, second, tzinfo=UTC)
    return Stamp(match[0], "date" if year else "year-less", moment.timestamp())


def _time(text: str) -> Stamp | None:
    match = _TIME.search(text)
    if match is None:
        return None
    hour, minute, second = map(int, match["time"].split(":"))
    if hour > 23 or minute > 59 or second > 60:
        return None
    return Stamp(match[0], "time", hour * 3600 + minute * 60 + second + _part(match["part"]))


def _rest(text: str) -> Stamp | None:
    if (match := _EPOCH.search(text)) is not None:
        return Stamp(match[0], "date", float(match["seconds"]))
    if (match := _RELATIVE.search(text)) is not None:
        minutes = match["unit"].startswith("m")
        return Stamp(match[0], "relative", float(match["number"]) * (60.0 if minutes else 1.0))
    return None


def _part(text: str | None) -> float:
    return float("0." + text[1:]) if text else 0.0


def on_one_clock(stamps: Sequence[Stamp | None]) -> list[float | None]:
    """Seconds of each on the clock that most of them are of; None where that cannot be told.

    A time of day that jumps back by more than half a day is the next day's.
    """
    clocks = Counter(stamp.clock for stamp in stamps if stamp is not None)
    if not clocks:
        return [None] * len(stamps)
    clock = clocks.most_common(1)[0][0]
    found: list[float | None] = []
    days_s, before = 0.0, None
    for stamp in stamps:
        if stamp is None or stamp.clock != clock:
            found.append(None)
            continue
        if clock == "time" and before is not None and before - stamp.seconds > _HALF_A_DAY_S:
            days_s += _DAY_S
        before = stamp.seconds
        found.append(stamp.seconds + days_s)
    return found
