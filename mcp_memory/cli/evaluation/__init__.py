"""`bench`: measures search on the user's own memory, with mined known-item questions, against BM25 and vectors alone.

    questions   the conversation turns, and four kinds of questions mined from them, each with the target turn
    report      asks all questions of each system in one run; figures with intervals, and verdicts on differences

Nothing is written, no text leaves the process unless examples are requested, and every figure has its interval and its
baselines. Mined questions compare searches on one memory. They need not be what people ask, and the figures say nothing
about another memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import (
    as_json,
    ask,
    command_settings,
    memory_options,
    print_answer,
    progress_bars,
    settings,
    wants_json,
)
from mcp_memory.cli.terminal import columns, escape_controls, one_line, wrap

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
@memory_options
def bench(questions: int, kinds: tuple[str, ...], seed: int, seconds: int, show: int) -> None:
    """Measure how well the search finds things in this memory.

    Questions are mined from your own conversations: each is made from a turn, or precedes it, and that turn
    is sought. The search, BM25 alone and the embedding model alone answer them. Every figure has its 95 % interval;
    if there are too few turns for figures, the exit code is 1.

    Nothing is written and nothing leaves this machine. Reranking by a model is left out, because it would.

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
        return await measure(memory, kinds=kinds or KINDS, progress=_report_once(tell), **limits)

    with progress_bars() as tell:
        report = ask(run)
    print_answer(report, _lines(report))
    if reranked and not wants_json():
        click.echo("The setting `rerank` is on; it was not used here.", err=True)


def _report_once(tell: Progress) -> Progress:
    """Wrap `tell` so that, without a terminal, it also prints a line on stderr when an operation begins."""
    announced: set[str] = set()

    def report(doing: str, done: int, of: int) -> None:
        tell(doing, done, of)
        if doing not in announced and not sys.stderr.isatty():
            click.echo(f"{doing} …", err=True)
        announced.add(doing)

    return report


# --- for people -------------------------------------------------------------------------------------


def _lines(report: BenchReport) -> Iterator[str]:
    read = "" if report.turns_read >= report.turns else f", {report.turns_read:,} of them read to mine from"
    yield f"{report.turns:,} turns in {report.sessions:,} sessions of space {escape_controls(report.space)}{read}"
    yield f"model {escape_controls(report.model or 'none')}, seed {report.seed}"
    yield "hit@1, hit@10: the turn sought is the first, or among ten. MRR: 100 / its rank, 0 beyond ten."
    yield "Per cent with 95 % intervals; differences are taken question by question."
    for kind in report.kinds:
        yield ""
        yield from _kind_lines(kind, [example for example in report.examples if example.kind == kind.kind])
    yield ""
    if report.stopped:
        yield "Time ran out before all questions were asked; those asked are a fair sample."
    differences = sum(len(kind.gaps) for kind in report.kinds)
    yield wrap(
        "Mined questions compare searches on this memory. They are not what you will ask: trust the differences, "
        f"not the levels. And of {differences} differences at 95 %, one in twenty misleads by chance.",
        "",
    )


def _kind_lines(kind: KindReport, examples: list[Example]) -> Iterator[str]:
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
        yield wrap(gap.verdict, "   ")
    if "dense" not in kind.systems:
        yield "   No embedding model is set, so there is no dense baseline, and ours uses words only."
    yield wrap(kind.caution, "   ")
    for example in examples:
        ranks = ", ".join(f"{LABELS[name]} {rank or '–'}" for name, rank in example.ranks.items())
        yield f"     {click.style(one_line(example.question, 74), bold=True)}"
        yield f"       {example.sought}: {one_line(example.excerpt, 64)}"
        yield f"       rank: {ranks}"


_FIGURES = (("hit@1", "hit1"), ("hit@10", "hit10"), ("MRR", "mrr10"), ("median ms", "median_ms"))


def _rows(
    results: Sequence[System | Gap], figures: Sequence[tuple[str, str]], *, sign: str = ""
) -> Iterator[tuple[str, ...]]:
    for title, name in figures:
        yield title, *(_figure(getattr(result, name), sign=sign) for result in results)


def _figure(figure: Figure, *, sign: str = "") -> str:
    low, high = figure.ci95
    return f"{figure.value:{sign}.1f} [{low:{sign}.1f}, {high:{sign}.1f}]"
