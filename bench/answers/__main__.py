"""Measures answers that readers give from the text of each system: `python -m bench.answers make|judge|tally ...`

    make DIR... --out FOLDER     write answer sheets for readers, and their key
    judge FOLDER ANSWERS...      write the sheet on which a judge marks the answers
    tally FOLDER FILES...        print the figures of the answers and marks

A reader is a person or a model, who gets a sheet of `FOLDER/sheets` and nothing else. `--help` after a command lists
its options.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from bench.answers.items import Asked, Plan, collect
from bench.answers.marks import check_complete, judge_sheet, read_returned
from bench.answers.sheets import check_new, lay_out, read_key, write_sheets
from bench.answers.systems import needs_pyramid, systems_named
from bench.answers.tally import table
from bench.sets import read_sets
from mcp_memory.core.errors import InvalidInput, McpMemoryError

DEFAULT_SYSTEMS = "recall,search,nothing"
ITEMS = 50


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except McpMemoryError as error:
        sys.exit(f"bench.answers: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.answers", description="Measure answers of a reader, system by system.")
    commands = parser.add_subparsers(required=True, metavar="make|judge|tally")

    make = commands.add_parser("make", help="write answer sheets for readers, and their key")
    make.add_argument("sets", nargs="+", type=Path, metavar="DIR", help="a set, or a folder of sets that count as one")
    make.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where sheets/ and key.jsonl go")
    make.add_argument("--questions", type=_positive, metavar="N", help="ask N questions of each DIR, chosen by chance")
    make.add_argument("--systems", type=systems_named, default=DEFAULT_SYSTEMS, help="default: %(default)s")
    make.add_argument("--homes", type=Path, metavar="FOLDER", help="homes of pyramids; haystacks without are left out")
    make.add_argument("--turns", type=_positive, metavar="N", help="the first N turns of each haystack")
    make.add_argument("--items", type=_positive, default=ITEMS, metavar="N", help="at most N a sheet: %(default)s")
    make.add_argument("--unanswerable", action="store_true", help="also ask what the memory does not hold")
    make.add_argument("--seed", type=int, default=0, metavar="N")
    make.set_defaults(run=_make)

    judge = commands.add_parser("judge", help="write the sheet on which a judge marks the answers")
    judge.add_argument("folder", type=Path, metavar="FOLDER", help="what `make` wrote")
    judge.add_argument("files", nargs="+", type=Path, metavar="ANSWERS", help='lines of {"id", "answer"}')
    judge.add_argument("--out", type=Path, required=True, metavar="FILE", help="the judge's sheet, in Markdown")
    judge.add_argument("--seed", type=int, default=0, metavar="N")
    judge.set_defaults(run=_judge)

    tally = commands.add_parser("tally", help="print the figures of the answers and marks")
    tally.add_argument("folder", type=Path, metavar="FOLDER", help="what `make` wrote")
    tally.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help='lines of {"id", "answer"} and {"id", "mark"}'
    )
    tally.add_argument("--difference", default="recall,search", metavar="A,B", help="systems: %(default)s")
    tally.add_argument("--types", action="store_true", help="a block for each type of question, of all sets")
    tally.set_defaults(run=_tally)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("has to be 1 or more")
    return int(text)


def _make(options: argparse.Namespace) -> None:
    check_new(options.out)
    chance = random.Random(options.seed)
    names = [folder.resolve().name for folder in options.sets]
    if len(set(names)) < len(names):
        raise InvalidInput("Two of the folders have the same name. Make sheets of each on its own.")
    sets = [read_sets(folder) for folder in options.sets]
    if options.homes is None and any(map(needs_pyramid, options.systems)):
        raise InvalidInput("A pyramid needs --homes: the folder in which `bench.pyramid --home` has kept SET-NUMBER.")
    if options.turns:
        sets = [[data.first(options.turns) for data in several] for several in sets]
    plan = Plan(
        systems=options.systems, questions=options.questions, unanswerable=options.unanswerable, homes=options.homes
    )
    asked: list[Asked] = []
    for name, data in zip(names, sets, strict=True):
        asked += anyio.run(collect, name, data, plan, chance)
    paths = write_sheets(lay_out(asked, options.systems, most=options.items, chance=chance), options.out)
    print(f"{len(asked)} questions, {len(options.systems)} systems. For readers, and nothing else of the folder:")
    print("\n".join(map(str, paths)))


def _judge(options: argparse.Namespace) -> None:
    key = read_key(options.folder)
    answers = read_returned(options.files, key).answers
    check_complete("answer", answers, key)
    options.out.write_text(judge_sheet(key, answers, chance=random.Random(options.seed)), encoding="utf-8")
    print(f"{len(key)} answers to mark: {options.out}")


def _tally(options: argparse.Namespace) -> None:
    key = read_key(options.folder)
    returned = read_returned(options.files, key)
    check_complete("answer", returned.answers, key)
    check_complete("mark", returned.marks, key)
    one, _, other = options.difference.partition(",")
    print("\n".join(table(key, returned.marks, between=(one, other), types=options.types)))


if __name__ == "__main__":
    main()
