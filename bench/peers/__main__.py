"""Compares this memory with other memory servers: `python -m bench.peers [--turns N] [--json FILE]`

Installs each server into `.peers/`, starts it over stdio with an empty home, and sends all of them the same invented
messages and questions (`bench.peers.story`) with the same client. Needs Linux, npm and PyPI; basic-memory needs a
Python 3.12 on the PATH, and mcp-memory-service a Python 3.11 whose SQLite loads extensions.

* `initialize`: from spawn to the answer, of the first client of a home and of the next ones beside it; the first start
  of each is not counted.
* `definitions`: tokens of the names, descriptions and schemas of all tools (o200k).
* store, search: median over rounds in which the servers take turns. `first ten`: the right message is among them, for
  questions with words of the message and for questions with synonyms.
* `resident`: all processes of the home after the rounds, then with four clients, each of which has searched. `disk`:
  the home, without weights of models.
* `kill -9`: messages found again, of those acknowledged right before all processes of the home were killed.
* `two servers`: messages written by two servers on one home at once: acknowledged but lost, and refused.

Other work on the machine changes all timings alike: only their ratios count.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Any

from bench.peers import measures
from bench.peers.installing import installed
from bench.peers.measures import Candidate
from bench.peers.programs import CANNOT_RUN, PROGRAMS
from bench.peers.story import QUESTIONS

HALF = len(QUESTIONS) // 2
CLIENTS = 4


def _p50(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: f"{row[name]['p50']:,.0f}" if row[name]["p50"] >= 10 else f"{row[name]['p50']:.1f}"


COLUMNS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "version": lambda row: row["version"] or "–",
    "licence": lambda row: row["licence"] or "–",
    "installed, MB": lambda row: f"{row['installed_mb']:,.0f}",
    "packages": lambda row: str(row["packages"]),
    "to `initialize`, s": lambda row: f"{row['initialize_ms']['p50'] / 1_000:.2f}",
    "… beside another client, s": lambda row: f"{row['next_initialize_ms']['p50'] / 1_000:.2f}",
    "tools": lambda row: str(row["tools"]),
    "definitions, tokens": lambda row: f"{row['definition_tokens']:,}",
    "store one, ms": _p50("store_ms"),
    "store 50 in one call, ms": _p50("store_batch_ms"),
    "search p50 / p95, ms": lambda row: "{p50:,.0f} / {p95:,.0f}".format(**row["search_ms"]),
    f"in the first ten, same words (of {HALF})": lambda row: str(row["found_same_words"]),
    f"in the first ten, other words (of {HALF})": lambda row: str(row["found_other_words"]),
    "a search returns, tokens": lambda row: f"{row['answer_tokens']:,}",
    "resident, MB": lambda row: f"{row['resident_mb']:,.0f}",
    "resident with four clients, MB": lambda row: f"{row['clients_mb']:,.0f}",
    "disk, MB": lambda row: f"{row['disk_mb']:,.1f}",
    "kept after `kill -9`": lambda row: f"{row['kept']} of {row['kills']}",
    "two servers: lost, refused": lambda row: f"{row['lost']}, {row['refused']} of {row['writes']}",
}


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the rows, and the reasons why some could not be completed."""
    candidates: list[Candidate] = []
    reasons = dict(CANNOT_RUN)
    for program in PROGRAMS:
        if options.only and program.name not in options.only:
            continue
        try:
            candidates.append(Candidate(program, installed(program), folder / program.name.replace(" ", "-")))
        except (CalledProcessError, OSError) as error:
            reasons[program.name] = f"could not be installed: {getattr(error, 'stderr', None) or error}"[:300]
    for one in candidates:
        one.figures |= {"turns": options.turns, "kills": options.kills, "writes": options.writes}
    for say, step in (
        ("start", lambda: measures.initialize(candidates, options.starts)),
        ("definitions", lambda: measures.count_definitions(candidates)),
        ("fill", lambda: measures.fill(candidates, options.turns)),
        ("rounds", lambda: measures.rounds(candidates, batches=options.batches)),
        ("more clients", lambda: measures.connect_more(candidates, CLIENTS)),
        ("two servers", lambda: measures.two_writers(candidates, options.writes)),
        ("kill -9", lambda: measures.kill_after_writes(candidates, options.kills)),
    ):
        print(f"bench.peers: {say}", file=sys.stderr)
        step()
    reasons |= {one.program.name: one.failed for one in candidates if one.failed}
    asked = {"turns": options.turns, "cpus": os.cpu_count(), "questions": len(QUESTIONS)}
    return {**asked, "rows": [measures.summed_up(one) for one in candidates], "reasons": reasons}


def table(found: Mapping[str, Any]) -> list[str]:
    """Return the figures as a Markdown table with a column per server, and a list of reasons below it."""
    rows: Sequence[Mapping[str, Any]] = found["rows"]
    lines = ["| | " + " | ".join(row["name"] for row in rows) + " |", "|---" * (len(rows) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(_cell(shown, row) for row in rows) + " |" for name, shown in COLUMNS.items()]
    return [*lines, "", *(f"* {name}: {reason}." for name, reason in found["reasons"].items())]


def _cell(shown: Callable[[Mapping[str, Any]], str], row: Mapping[str, Any]) -> str:
    try:
        return shown(row)
    except KeyError:  # it has no such figure
        return "–"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=1_000, metavar="N", help="messages stored [default: %(default)s]")
    parser.add_argument("--starts", type=int, default=3, help="starts of each [default: %(default)s]")
    parser.add_argument("--batches", type=int, default=5, help="batches of 50 [default: %(default)s]")
    parser.add_argument("--kills", type=int, default=20, help="[default: %(default)s]")
    parser.add_argument("--writes", type=int, default=200, help="by two servers [default: %(default)s]")
    parser.add_argument("--only", action="append", metavar="NAME", help="measure this server; can be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table between the marks of this page")
    options = parser.parse_args(arguments)
    if options.turns < len(QUESTIONS):
        parser.error(f"--turns has to be {len(QUESTIONS)} or more: each question has a message")
    with TemporaryDirectory(prefix="bench-peers-", ignore_cleanup_errors=True) as folder:
        found = measure(options, Path(folder))
    print("\n".join(table(found)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.page:
        before, _, rest = options.page.read_text(encoding="utf-8").partition("<!-- peers -->\n")
        shown = "\n".join(table(found))
        options.page.write_text(f"{before}<!-- peers -->\n\n{shown}\n\n<!-- end -->{rest.partition('<!-- end -->')[2]}")


if __name__ == "__main__":
    main()
