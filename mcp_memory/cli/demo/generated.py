"""The long results of the demo's task, made instead of stored: a log, an API's reply, a table, a listing.

All four tell of the same ferries: on the night of 25 October 2026 the clocks go back, the boat of 02:30
sails twice, and the importer keeps one of the two. Each comes out the same on every run.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

SUMMER, WINTER = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))
NIGHT = datetime(2026, 10, 25, tzinfo=SUMMER)
CLOCKS_GO_BACK = NIGHT.replace(hour=3)
NIGHTS_IN_LOG = 9


@dataclass(frozen=True, slots=True)
class Route:
    number: int
    start: str
    end: str
    vessel: str
    minutes: int
    every: int


ROUTES = (
    Route(1, "Skarvøy", "Bergen Strandkaien", "MF Teist", minutes=95, every=60),
    Route(2, "Skarvøy", "Hellesund", "MF Lomvi", minutes=60, every=40),
    Route(3, "Hellesund", "Ytre Lyngholmen", "MF Havelle", minutes=35, every=35),
    Route(4, "Skarvøy", "Kvamsdal kai", "MF Skarv", minutes=125, every=95),
)


@dataclass(frozen=True, slots=True)
class Sailing:
    route: Route
    departs: datetime
    cars: int
    passengers: int

    @property
    def arrives(self) -> datetime:
        moment = self.departs + timedelta(minutes=self.route.minutes)
        return moment.astimezone(WINTER) if moment >= CLOCKS_GO_BACK else moment

    @property
    def key(self) -> str:
        return f"SKV{self.route.number}-{self.departs:%Y%m%d%H%M}"


def _sailings(day: datetime, dice: random.Random) -> list[Sailing]:
    """All sailings of a day, in order; in the long night the boat of 02:30 is there twice."""
    long_night = day == NIGHT
    by_day = WINTER if long_night else SUMMER
    departures = [
        (route, day.replace(hour=minute // 60, minute=minute % 60, tzinfo=by_day))
        for route in ROUTES
        for minute in range(5 * 60 + 45, 24 * 60, route.every)
    ]
    nights = (SUMMER, WINTER) if long_night else (SUMMER,)
    departures += [(ROUTES[1], day.replace(hour=2, minute=30, tzinfo=zone)) for zone in nights]
    departures.sort(key=lambda one: (one[1], one[0].number))
    return [Sailing(route, at, dice.randrange(3, 68), dice.randrange(9, 290)) for route, at in departures]


def log() -> str:
    """Nine nights of the importer's log, some 200 KB; the loss is one INFO line in the last of them."""
    dice = random.Random(20261025)
    nights = [NIGHT - timedelta(days=back) for back in reversed(range(NIGHTS_IN_LOG))]
    return "".join(f"{line}\n" for night in nights for line in _night(night, dice))


def _night(day: datetime, dice: random.Random) -> Iterator[str]:
    clock = day.replace(hour=1, minute=10, second=2)
    pid = dice.randrange(2000, 30000)

    def line(level: str, name: str, text: str) -> str:
        nonlocal clock
        clock += timedelta(milliseconds=dice.randrange(2, 60))
        stamp = f"{clock:%Y-%m-%d %H:%M:%S},{clock.microsecond // 1000:03d}"
        return f"{stamp} {level:<7} [{pid}] timetable.{name}: {text}"

    yield line("INFO", "cli", f"run {day:%Y-%m-%d} started, config /etc/timetable/winter.toml")
    if day.day == 22:
        yield line("ERROR", "feed", "GET feed.kystdata.example timed out after 30 s, attempt 1 of 3")
        yield "Traceback (most recent call last):"
        yield '  File "/srv/timetable/src/timetable/feed.py", line 88, in fetch'
        yield "    with self.opener.open(request, timeout=self.timeout) as reply:"
        yield "TimeoutError: The read operation timed out"
        yield line("WARNING", "feed", "trying again, attempt 2 of 3")
    yield line("INFO", "feed", f"GET feed.kystdata.example/v2/sailings?operator=SKV&day={day:%Y-%m-%d} 200")
    sailings = _sailings(day, dice)
    yield line("INFO", "feed", f"{len(sailings)} rows, saved as feed/kystdata-{day:%Y%m%d}.csv")
    seen: set[str] = set()
    for number, one in enumerate(sailings, start=2):
        what = f"route {one.route.number} departs {one.departs:%Y-%m-%d %H:%M} vessel '{one.route.vessel}'"
        load = f"cars {one.cars} passengers {one.passengers}"
        yield line("DEBUG", "importer", f"row {number}: {what} {load}")
        if one.passengers > 280:
            yield line("WARNING", "rules", f"row {number}: {one.passengers} passengers, ask the bridge")
        if one.key in seen:
            yield line("INFO", "importer", f"upsert: key {one.key} already present, replaced")
        seen.add(one.key)
        yield line("DEBUG", "importer", f"upsert {one.key} ok")
    yield line("INFO", "importer", f"imported {len(sailings)} rows from kystdata-{day:%Y%m%d}.csv")
    yield line("INFO", "publish", f"published timetable.sqlite, {len(seen)} sailings, kept 14 older files")
    yield line("INFO", "cli", f"run {day:%Y-%m-%d} finished: success")


def feed() -> str:
    """The reply of the feed's API for the long night: every sailing with its offset and its stops."""
    dice = random.Random(20261026)
    sailings = [_feed_entry(number, one, dice) for number, one in enumerate(_sailings(NIGHT, dice), start=1)]
    reply = {
        "operator": {"code": "SKV", "name": "Skarvøy Ferries", "timezone": "Europe/Oslo"},
        "day": "2026-10-25",
        "generated": "2026-10-25T01:04:11+02:00",
        "count": len(sailings),
        "sailings": sailings,
        "next": None,
    }
    return json.dumps(reply, ensure_ascii=False, indent=2) + "\n"


def _feed_entry(number: int, one: Sailing, dice: random.Random) -> dict[str, Any]:
    route = one.route
    booked = {"cars": one.cars, "passengers": one.passengers}
    return {
        "id": f"kd-{dice.randrange(16**8):08x}",
        "sequence": number,
        "route": {"number": route.number, "from": route.start, "to": route.end},
        "departs": _local(one.departs),
        "arrives": _local(one.arrives),
        "vessel": {"name": route.vessel, "imo": 9100000 + 137 * route.number, "status": "in service"},
        "capacity": {"cars": 88, "passengers": 299, "booked": booked},
        "stops": [
            {"quay": route.start, "platform": dice.choice("AB"), "boarding_min": 10},
            {"quay": route.end, "platform": dice.choice("AB"), "boarding_min": 5},
        ],
        "notices": ["Night boat: ring the bell at the quay"] if one.departs.hour < 5 else [],
    }


def _local(moment: datetime) -> dict[str, str]:
    return {"local": f"{moment:%Y-%m-%d %H:%M}", "utc_offset": moment.isoformat()[-6:]}


def table() -> str:
    """Departures of the long night in the feed beside those in the published file."""
    sailings = _sailings(NIGHT, random.Random(20261027))
    in_feed = Counter(one.key for one in sailings)
    rows: list[tuple[str, ...]] = [("route", "departs", "vessel", "in_feed", "in_table", "missing")]
    for one in {one.key: one for one in sailings}.values():
        sent = in_feed[one.key]
        departs = f"{one.departs:%Y-%m-%d %H:%M}"
        rows.append((str(one.route.number), departs, one.route.vessel, str(sent), "1", str(sent - 1)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def listing() -> str:
    """`/srv/timetable` with the feeds, files and logs of the last three weeks, as `ls -lR` has it."""
    dice = random.Random(20261028)
    days = [NIGHT - timedelta(days=back) for back in reversed(range(21))]
    sources = ("__init__", "__main__", "api", "cli", "feed", "importer", "publish", "routes", "rules")
    tests = ("conftest", "test_api", "test_cli", "test_importer", "test_publish", "test_routes")
    folders = {
        "": [(NIGHT, name) for name in ("compare_with_feed.sql", "pyproject.toml", "timetable.sqlite")],
        "/feed": [(day, f"kystdata-{day:%Y%m%d}.csv") for day in days],
        "/history": [(day, f"timetable-{day:%Y%m%d}.sqlite") for day in days[-14:]],
        "/log": [(day, f"import-{day:%Y%m%d}.log.gz") for day in days],
        "/src/timetable": [(days[3], f"{name}.py") for name in sources],
        "/tests": [(days[5], f"{name}.py") for name in tests],
    }
    lines: list[str] = []
    for folder, files in folders.items():
        lines += [f"/srv/timetable{folder}:", f"total {dice.randrange(40, 900)}"]
        for day, name in files:
            size, minute = dice.randrange(900, 260_000), dice.randrange(10, 60)
            lines.append(f"-rw-r--r-- 1 timetable timetable {size:>7} {day:%b %d} 01:{minute} {name}")
        lines.append("")
    return "\n".join(lines)


GENERATED: Mapping[str, Callable[[], str]] = {"log": log, "feed": feed, "table": table, "listing": listing}
