"""`bench`: measures search on a person's own memory, with mined known-item questions, beside BM25 and vectors alone.

    questions   the conversation turns, and four kinds of questions mined from them, each with the turn sought
    report      asks all questions of each system in one run; figures with intervals, and verdicts on differences

Nothing is written, no text leaves the process unless examples are requested, and every figure has its interval and its
floors. It does not know whether people would ask such questions: they compare searches on one memory; they say nothing
about another memory, and the figures are no grades.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import as_json, ask, command_settings, place, print_answer, progress_bars, settings, wants_json
from mcp_memory.cli.terminal import columns, one_line, visible, wrapped

if TYPE_CHECKING:
    from mcp_memory.cli.evaluation.report import BenchReport, Example, Figure, Gap, KindReport, Progress, System
    from mcp_memory.service.memory import Memory

KINDS = ("words", "dim", "around", "reply")


@click.command()
@click.option(
    "--questions", type=click.IntRange(30, 2000), default=200, show_default=True, metavar="N", help="At most N a kind."
)
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only these kinds of question.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other questions.")
@click.option("--seconds", type=click.IntRange(1), default=300, show_default=True, help="Stop asking after this time.")
@click.option(
    "--show", type=click.IntRange(0, 50), default=0, metavar="N", help="Show N questions of each kind, and their turns."
)
@as_json
@place
def bench(questions: int, kinds: tuple[str, ...], seed: int, seconds: int, show: int) -> None:
    """Measure how well the search finds things in this memory.

    Questions are mined from your own conversations: each is made from a turn, or precedes it, and that turn
    is sought. They are asked of the search, of BM25 alone and of the embedding model alone. Every figure
    comes with its 95 % interval; where there is too little talk for that, there is no figure and the exit code is 1.

    Nothing is written and nothing leaves this machine. A rerank by a model is left out, because it would.

    \b
    mcp-memory bench
    mcp-memory bench --kind reply --show 5
    mcp-memory bench --questions 1000 --json > bench.json
    """
    reranked = settings().rerank
    command_settings()["rerank"] = False

    async def run(memory: Memory) -> BenchReport:
        from mcp_memory.cli.evaluation.report import measure

        limits: dict[str, int] = {"questions": questions, "seed": seed, "seconds": seconds, "show": show}
        return await measure(memory, kinds=kinds or KINDS, progress=_said_once(tell), **limits)

    with progress_bars() as tell:
        report = ask(run)
    print_answer(report, _lines(report))
    if reranked and not wants_json():
        click.echo("The setting `rerank` is on; it was left out here.", err=True)


def _said_once(tell: Progress) -> Progress:
    """Return `tell`, and without a terminal a line on stderr for each thing that is done."""
    said: set[str] = set()

    def told(doing: str, done: int, of: int) -> None:
        tell(doing, done, of)
        if doing not in said and not sys.stderr.isatty():
            click.echo(f"{doing} …", err=True)
        said.add(doing)

    return told


# --- for people -------------------------------------------------------------------------------------


def _lines(report: BenchReport) -> Iterator[str]:
    read = "" if report.turns_read >= report.turns else f", {report.turns_read:,} of them read to mine from"
    yield f"{report.turns:,} turns in {report.sessions:,} sessions of space {visible(report.space)}{read}"
    yield f"model {visible(report.model or 'none')}, seed {report.seed}"
    yield "hit@1, hit@10: the turn sought is the first, or among ten. MRR: 100 / its rank, 0 beyond ten."
    yield "Per cent with 95 % intervals; differences are taken question by question."
    for kind in report.kinds:
        yield ""
        yield from _of_kind(kind, [one for one in report.examples if one.kind == kind.kind])
    yield ""
    if report.stopped:
        yield "Time ran out before all questions were asked; those that were are a fair part of them."
    command_settings = sum(len(kind.gaps) for kind in report.kinds)
    yield wrapped(
        "Mined questions compare searches on this memory. They are not what you will ask: trust the differences, "
        f"not the heights. And of {command_settings} differences at 95 %, one in twenty misleads by chance.",
        "",
    )


def _of_kind(kind: KindReport, examples: list[Example]) -> Iterator[str]:
    yield click.style(f"{kind.kind}: ", bold=True) + kind.asks
    if kind.refused:
        yield f"  No figures: {kind.refused}"
        return
    from mcp_memory.cli.evaluation.report import LABELS

    labels = [LABELS[name] for name in kind.systems]
    yield columns([(f"{kind.questions} questions", *labels), *_rows(list(kind.systems.values()), _FIGURES)], indent=3)
    labels = [f"ours − {LABELS[name].removesuffix(' only')}" for name in kind.gaps]
    yield columns([("difference", *labels), *_rows(list(kind.gaps.values()), _FIGURES[:-1], sign="+")], indent=3)
    for gap in kind.gaps.values():
        yield wrapped(gap.verdict, "   ")
    if "dense" not in kind.systems:
        yield "   No embedding model is set, so there is no dense floor, and ours goes by words too."
    yield wrapped(kind.caution, "   ")
    for one in examples:
        ranks = ", ".join(f"{LABELS[name]} {rank or '–'}" for name, rank in one.ranks.items())
        yield f"     {click.style(one_line(one.question, 74), bold=True)}"
        yield f"       {one.sought}: {one_line(one.excerpt, 64)}"
        yield f"       rank: {ranks}"


_FIGURES = (("hit@1", "hit1"), ("hit@10", "hit10"), ("MRR", "mrr10"), ("median ms", "median_ms"))


def _rows(
    found: Sequence[System | Gap], figures: Sequence[tuple[str, str]], *, sign: str = ""
) -> Iterator[tuple[str, ...]]:
    for title, name in figures:
        yield title, *(_figure(getattr(one, name), sign=sign) for one in found)


def _figure(figure: Figure, *, sign: str = "") -> str:
    low, high = figure.ci95
    return f"{figure.value:{sign}.1f} [{low:{sign}.1f}, {high:{sign}.1f}]"
