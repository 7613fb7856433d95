"""Measures offloading on real agent runs: `python -m bench.offload FILE [--policy P] [--over N] [--curve]`

FILE contains runs as `bench.trajectories` reads them, which also defines tokens, cost and survival. Every call of every
run is counted, compared with sending everything. Policies:

* `arrival`  each result over the threshold is replaced when it arrives (`bench.cutting.Arrival`, the real product)
* `batched`  old results and arguments are compressed together if that saves more than the lost cache costs
  (`bench.batched`)
* `both`     the first, with longer previews, then the second

The floor is head and tail, on arrival: 400 characters, or those of `--budget`. `--curve` shows both over budgets.

A result is large from 1,000 characters on; with `--over`, it must also exceed so many tokens. Hooks of clients begin at
1,500 (`offload_over`), and so does the proxy.

Each system has two rows. The first counts only parts of the run itself and is the one to compare with the floor, which
has nothing else; `all in` adds the costs of the policy: the definition of expand_node before every prompt, and a call
of it wherever a later message uses a lost name (`bench.cutting.reread`).

The JSON has shares from 0 to 1; `identifiers` is the number of identifiers, `bytes_recovered` the share of the
offloaded bytes that were read back unchanged (null for the floor, which keeps nothing to read back).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from bench.batched import Batched
from bench.cutting import Arrival, HeadTail, Recovered, reread
from bench.trajectories import Ledger, Policy, Prompt, Trajectory, read_runs, tokens_of
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.integrations.proxy.kept_results import definition
from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite.store import open_store

FLOOR_BUDGET = 400
CURVE = (200, 300, 400, 600, 800, 1_000, 1_200, 1_600, 2_400)
WITH_BATCHES = 1_150
"""Characters of a preview if results are compressed later anyway: then more can be kept when they arrive."""

Making = Callable[[Store, int | None, int], Policy]


def _batched(store: Store, _: int | None, over: int) -> Policy:
    return Batched(store)


def _both(store: Store, budget: int | None, over: int) -> Policy:
    return Batched(store, first=Arrival(store, WITH_BATCHES if budget is None else budget, over))


POLICIES: dict[str, Making] = {"arrival": Arrival, "batched": _batched, "both": _both}


@dataclass(frozen=True, kw_only=True)
class Run:
    """A system's ledgers over all runs: for the messages alone, and with all costs of the policy."""

    alone: Ledger
    all_in: Ledger
    recovered: Recovered | None = None


@dataclass(frozen=True, slots=True)
class _Defined:
    """A policy with the definition of expand_node before every prompt."""

    policy: Policy

    def prompts(self, run: Trajectory) -> Iterator[Prompt]:
        tool = definition("expand_node")  # as the wrapping proxy lists it, without its annotations
        ahead = tokens_of(json.dumps([tool["name"], tool["description"], tool["inputSchema"]]))
        for prompt in self.policy.prompts(run):
            yield Prompt(prompt.sent, prompt.definitions + ahead)


def measure(runs: Sequence[Trajectory], make: Callable[[Store], Policy], *, all_in: bool = True) -> Run:
    """Replay every run under a policy with its own store."""
    alone, causing = Ledger(), Ledger()
    with TemporaryDirectory(prefix="bench-") as folder, closing(open_store(Path(folder))) as store:
        policy = make(store)
        for run in tqdm(runs, unit="run", leave=False, disable=None):
            alone.add(run, policy)
    recovered = getattr(policy, "recovered", None)  # of a policy that keeps what it cuts
    if all_in:
        with TemporaryDirectory(prefix="bench-") as folder, closing(open_store(Path(folder))) as store:
            policy = _Defined(make(store))
            for run, losses in zip(runs, alone.losses, strict=True):
                causing.add(reread(run, losses), policy)
    return Run(alone=alone, all_in=causing, recovered=recovered)


def report(name: str, runs: Sequence[Trajectory], policy: str, budget: int | None, over: int = 0) -> dict[str, Any]:
    """Return the figures in the format of `--json`."""
    floor = FLOOR_BUDGET if budget is None else budget
    systems = {
        "ours": measure(runs, lambda store: POLICIES[policy](store, budget, over)),
        "headtail": measure(runs, lambda _: HeadTail(floor, over)),
    }
    return {
        "set": name,
        "trajectories": len(runs),
        "policy": policy,
        "budget": budget,
        "over": over,
        "systems": {name: _figures(run) for name, run in systems.items()},
    }


def _figures(run: Run) -> dict[str, Any]:
    return {
        "tokens_saved": _share(run.alone.tokens_saved),
        "cost_saved": _share(run.alone.cost_saved),
        "survival": _share(run.alone.survival),
        "identifiers": run.alone.used,
        "own_words_lost": _share(run.alone.own_lost / run.alone.own if run.alone.own else None),
        "bytes_recovered": _share(run.recovered.share) if run.recovered else None,
        "all_in": {"tokens_saved": _share(run.all_in.tokens_saved), "cost_saved": _share(run.all_in.cost_saved)},
        "tokens": run.alone.tokens,
        "tokens_whole": run.alone.whole_tokens,
    }


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


# --- for people -------------------------------------------------------------------------------------


def table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the figures as lines of text, in per cent; negative values are savings."""
    yield f"{found['set']}: {found['trajectories']} runs, {found['systems']['ours']['tokens_whole']:,} prompt tokens"
    yield _row("", "tokens", "cost", "survival", "of", "bytes back")
    for name, one in found["systems"].items():
        label = f"{name} ({found['policy']})" if name == "ours" else name
        back = one["bytes_recovered"]
        yield _row(
            label, _saved(one["tokens_saved"]), _saved(one["cost_saved"]), _percent(one["survival"]),
            f"{one['identifiers']:,}", _percent(back),
        )  # fmt: skip
        yield _row("  all in", _saved(one["all_in"]["tokens_saved"]), _saved(one["all_in"]["cost_saved"]))


def curve(runs: Sequence[Trajectory], policy: str) -> Iterator[str]:
    """Yield tokens, cost and survival of the policy and of head and tail for each budget."""
    yield _row("characters", "tokens", "cost", "survival", "head+tail:", "tokens", "cost", "survival")
    for budget in (*CURVE, None):
        ours = measure(runs, lambda store, chars=budget: POLICIES[policy](store, chars, 0), all_in=False).alone
        cells = [_saved(ours.tokens_saved), _saved(ours.cost_saved), _percent(ours.survival)]
        if budget is not None:
            floor = measure(runs, lambda _, chars=budget: HeadTail(chars), all_in=False).alone
            cells += ["", _saved(floor.tokens_saved), _saved(floor.cost_saved), _percent(floor.survival)]
        yield _row("default" if budget is None else f"{budget:,}", *cells)


def _saved(share: float | None) -> str:
    return "–" if share is None else f"{-100 * share:+.1f}".replace("-", "−")


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def _row(label: str, *cells: str) -> str:
    return (f"{label:<18}" + "".join(f"{cell:>11}" for cell in cells)).rstrip()


# --- the command ------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.offload", description="Offloading on real runs, beside head and tail.")
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--policy", choices=tuple(POLICIES), default="arrival", help="default: %(default)s")
    parser.add_argument("--budget", type=int, metavar="N", help="characters of a preview; default: by its result")
    parser.add_argument(
        "--over", type=int, default=0, metavar="N", help="only results of more tokens, as hooks do from 1,500 on"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="the first N runs")
    parser.add_argument("--curve", action="store_true", help="budget against survival, instead of one budget")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures there")
    options = parser.parse_args(arguments)
    if options.budget is not None and options.budget < 50:
        parser.error("--budget has to be 50 or more")
    try:
        runs = read_runs(options.file)[: options.limit]
        if options.curve:
            for line in curve(runs, options.policy):
                print(line, flush=True)
            return
        found = report(options.file.name.split(".")[0], runs, options.policy, options.budget, options.over)
    except McpMemoryError as error:
        sys.exit(f"bench.offload: {error}")
    print("\n".join(table(found)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
