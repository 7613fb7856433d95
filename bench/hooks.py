"""Measures hooks: `python -m bench.hooks [--turns N] [--rounds N] [--prompts N] [--server MS] [--show] [--json FILE]`

Replays a session of twenty turns with a compaction in the middle through real `mcp-memory hook` processes, one for each
event, as Claude Code runs them. The inputs are those that the real client gave its hooks, and the log grows as it did
then (`fixtures/transcripts/claude-code`, made by `scripts/record_session.py`; the story is invented).

Each round has a separate home with N invented turns and the earlier messages of the story's user. Figures:

* `ms`: from spawn to exit of the hook; floor: `python -c pass`, started alternately with it. The `startup` of a round
  is cold: the hook starts the resident process. All others find it running.
* `tokens`: text added to the context by event, and tool outputs before and after, counted as cl100k_base.

Then N prompts are the first ones of N sessions, each `cold` (no resident process runs, so the hook answers itself) and
`warm`, both on this machine as it is and beside two processes that only compute. Figures: prompts that got what the
memory knows, and `ms` as above, with its floor, and `cpu`, the processor time of the hook.

With `--server MS` the memory is on a server in another process, whose answers arrive MS milliseconds later: a round
trip. In a real network a new connection takes another round trip, and TLS one more; here only requests do.

Single figures are medians. `--show` prints all added text in order.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter, sleep
from typing import Any

import anyio
from tqdm import tqdm

from bench.corpus import batches, session_of
from bench.ours import until_indexed
from bench.stats import timings_ms
from bench.trajectories import tokens_of
from mcp_memory.core.config import Settings
from mcp_memory.integrations.clients.hook_entries import hooks_of
from mcp_memory.integrations.hooks.daemon_files import DaemonEndpoint, endpoint_files
from mcp_memory.service.memory import open_memory
from tests.remote.team_server import team_server

FOLDER = Path(__file__).parent.parent / "fixtures" / "transcripts"
_TOO_LONG_S = 30.0
_END_S = 15.0


@dataclass(frozen=True, slots=True)
class Event:
    """The input of a hook, and the number of lines that the client's log had then."""

    lines: int
    told: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.told["hook_event_name"]

    @property
    def label(self) -> str:
        """The event, with its source or tool if that changes the work: `SessionStart compact`, `PostToolUse Bash`."""
        return " ".join([self.name, *(self.told[key] for key in ("source", "tool_name") if key in self.told)])

    def asks(self, words: str) -> bool:
        """Return whether this is a prompt that contains some text."""
        return words in self.told.get("prompt", "")


@dataclass(frozen=True, slots=True)
class Run:
    """One replayed event: the seconds from spawn to exit, those of the bare start after it, and the output."""

    event: Event
    took: float
    bare: float
    said: Mapping[str, Any]

    @property
    def added(self) -> str:
        """The text added to the context."""
        return self.said.get("hookSpecificOutput", {}).get("additionalContext", "")

    @property
    def replaced(self) -> Any:
        """The replacement of the tool's output; None if it was not replaced."""
        return self.said.get("hookSpecificOutput", {}).get("updatedToolOutput")


def events() -> list[Event]:
    """Return the events of the recorded session that our hooks handle, in order."""
    ours = hooks_of("claude-code", ["mcp-memory"])
    lines = (FOLDER / "claude-code" / "hooks.jsonl").read_text(encoding="utf-8").splitlines()
    told = [Event(event["lines"], event["input"]) for event in map(json.loads, lines)]
    return [event for event in told if any(_matches(entry, event) for entry in ours.get(event.name, ()))]


def _matches(entry: Mapping[str, Any], event: Event) -> bool:
    return not entry.get("matcher") or re.fullmatch(entry["matcher"], event.told.get("tool_name", "")) is not None


def measure(
    *, turns: int, rounds: int, prompts: int, server_ms: float | None = None
) -> tuple[list[list[Run]], list[FirstPrompts]]:
    """Return the runs of each round, and the first prompts; each begins with a copy of the same home.

    With `server_ms`, that home is the server's, and hooks have one with an address and a token.
    """
    with TemporaryDirectory(prefix="bench-hooks-") as made:
        folder = Path(made)
        anyio.run(partial(seed, folder / "seed", turns))
        first: list[FirstPrompts] = []
        if prompts:
            with _home_of_hooks(folder / "first", folder / "seed", server_ms) as home:
                first = first_prompts(home, prompts)
        found: list[list[Run]] = []
        for number in range(rounds):
            with _home_of_hooks(folder / f"home-{number}", folder / "seed", server_ms) as home:
                found.append(list(replay(home, folder / f"log-{number}.jsonl", events())))
        return found, first


@contextmanager
def _home_of_hooks(home: Path, seeded: Path, server_ms: float | None) -> Generator[Path]:
    """Yield a home with a copy of the memory, or one whose memory is that copy on a server."""
    if server_ms is None:
        shutil.copytree(seeded, home)
        yield home
        return
    there = home.with_name(f"{home.name}-server")
    shutil.copytree(seeded, there)
    with team_server(there, embedder="bundled") as server:
        home.mkdir()
        config = home / "config.toml"
        config.write_text(f'server = "{server.url}"\nserver_token = "{server.token("bench")}"\n')
        config.chmod(0o600)
        server.proxy.delay = server_ms / 1000
        yield home


async def seed(home: Path, turns: int) -> None:
    """Fill a new home with `turns` invented turns, and with the messages of earlier days."""
    async with open_memory(Settings(home=home)) as memory:
        for number, batch in enumerate(batches(turns)):
            await memory.record_turns(batch, session=session_of(number))
        for fact in json.loads((FOLDER / "skerry.json").read_text(encoding="utf-8"))["earlier"]:
            await memory.remember(fact, typed=True)
        await until_indexed(memory)


def replay(home: Path, log: Path, recorded: Sequence[Event]) -> Iterator[Run]:
    """Yield the run of each event, with the log as long as it was then; afterwards the resident process has ended."""
    command = hook_command(home)
    lines = (FOLDER / "claude-code" / "session.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    try:
        for event in tqdm(recorded, desc="hooks", leave=False):
            if event.lines:
                log.write_text("".join(lines[: event.lines]), encoding="utf-8")
            told = json.dumps({**event.told, "transcript_path": str(log)}).encode()
            took, said = _timed([*command, event.name], told)
            bare, _ = _timed([sys.executable, "-c", "pass"], b"")
            yield Run(event, took, bare, json.loads(said) if said.strip() else {})
    finally:
        _ended(home)


def hook_command(home: Path) -> list[str]:
    return [str(Path(sys.executable).with_name("mcp-memory")), "--home", str(home), "hook"]


def _timed(command: Sequence[str], given: bytes) -> tuple[float, bytes]:
    start = perf_counter()
    ran = subprocess.run(command, input=given, capture_output=True, check=True, timeout=_TOO_LONG_S)
    return perf_counter() - start, ran.stdout


def _ended(home: Path) -> None:
    """End the resident processes, wait until they are gone, and remove the files that are left."""
    for file in endpoint_files(home):
        if endpoint := DaemonEndpoint.read(file):
            with suppress(ProcessLookupError):
                os.kill(endpoint.pid, signal.SIGTERM)
            until = monotonic() + _END_S
            while monotonic() < until and _is_running(endpoint.pid):
                sleep(0.02)
        file.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# --- first prompts ----------------------------------------------------------------------------------

_QUESTION, _ANSWER = "Who is the harbour master of Torvik?", "Odd Berge"
_HOGS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstPrompts:
    """First prompts of sessions under one condition: the seconds of each hook, and of each bare start after it."""

    condition: str
    answered: int
    took: Sequence[float]
    cpu: Sequence[float]
    bare: Sequence[float]


def first_prompts(home: Path, many: int) -> list[FirstPrompts]:
    """Measure `many` first prompts under each condition."""
    measured: list[FirstPrompts] = []
    for load in ("quiet", f"{_HOGS} processes compute"):
        for start in ("cold", "warm"):
            with ExitStack() as stack:
                if load != "quiet":
                    stack.enter_context(_hogs())
                stack.callback(_ended, home)
                measured.append(_first_prompts(home, many, f"{start}, {load}", is_cold=start == "cold"))
    return measured


def _first_prompts(home: Path, many: int, condition: str, *, is_cold: bool) -> FirstPrompts:
    if not is_cold:
        start_resident(home)
    answered, took, cpu, bare = 0, list[float](), list[float](), list[float]()
    for _ in tqdm(range(many), desc=condition, leave=False):
        before = os.times()
        seconds, said = _timed([*hook_command(home), "UserPromptSubmit"], _prompt())
        after = os.times()
        cpu.append(after.children_user + after.children_system - before.children_user - before.children_system)
        answered += _ANSWER.encode() in said
        took.append(seconds)
        bare.append(_timed([sys.executable, "-c", "pass"], b"")[0])
        if is_cold:
            _await_resident(home)
            _ended(home)
    return FirstPrompts(condition=condition, answered=answered, took=took, cpu=cpu, bare=bare)


def start_resident(home: Path) -> None:
    """Start the resident process of a home as a session does, and wait until it answers."""
    _timed([*hook_command(home), "UserPromptSubmit"], _prompt())
    _await_resident(home)
    until = monotonic() + _TOO_LONG_S
    while monotonic() < until:
        _timed([*hook_command(home), "SessionStart"], _prompt())
        if " start daemon " in (home / "hooks" / "outcomes.log").read_text(encoding="utf-8"):
            sleep(2.0)  # it loads the model after its first answer
            return


def _await_resident(home: Path) -> None:
    until = monotonic() + _TOO_LONG_S
    while monotonic() < until and not any(map(DaemonEndpoint.read, endpoint_files(home))):
        sleep(0.02)


def _prompt() -> bytes:
    return json.dumps({"session_id": str(uuid.uuid4()), "prompt": _QUESTION, "source": "startup"}).encode()


@contextmanager
def _hogs() -> Generator[None]:
    """Keep processors busy with programs of the same priority."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(_HOGS)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


# --- for people -------------------------------------------------------------------------------------


def summary(rounds: Sequence[Sequence[Run]], first: Sequence[FirstPrompts] = ()) -> dict[str, Any]:
    """Return the figures: times over all rounds, tokens of the first one, and the first prompts."""
    runs = [run for ran in rounds for run in ran]
    labels = dict.fromkeys(run.event.label for run in runs)
    replaced = [run for run in rounds[0] if run.replaced is not None]
    return {
        "rounds": len(rounds),
        "events": {label: _event([run for run in runs if run.event.label == label], rounds[0]) for label in labels},
        "warm_ms": timings_ms([run.took for run in runs if run.event.told.get("source") != "startup"]),
        "bare_ms": timings_ms([run.bare for run in runs]),
        "outputs": {
            "replaced": len(replaced),
            "before": sum(_size(run.event.told["tool_response"]) for run in replaced),
            "after": sum(_size(run.replaced) for run in replaced),
        },
        "first_prompts": [
            {
                "condition": prompts.condition,
                "answered": prompts.answered,
                "prompts": len(prompts.took),
                "ms": timings_ms(prompts.took),
                "cpu_ms": timings_ms(prompts.cpu),
                "bare_ms": timings_ms(prompts.bare),
            }
            for prompts in first
        ],
    }


def _event(runs: Sequence[Run], first: Sequence[Run]) -> dict[str, Any]:
    added = [tokens_of(run.added) for run in first if run.event.label == runs[0].event.label and run.added]
    return {"count": len(runs), "ms": timings_ms([run.took for run in runs]), "told": len(added), "tokens": sum(added)}


def _size(output: Any) -> int:
    return tokens_of(output if isinstance(output, str) else json.dumps(output, ensure_ascii=False))


def table(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures as lines of text."""
    yield f"{'event':<32}{'count':>7}{'p50 ms':>9}{'p95 ms':>9}{'told':>7}{'tokens':>9}"
    for label, row in found["events"].items():
        yield (
            f"{label:<32}{row['count']:>7}{row['ms']['p50']:>9.0f}{row['ms']['p95']:>9.0f}"
            f"{row['told']:>7}{row['tokens']:>9,}"
        )
    for label, name in (("all but startup", "warm_ms"), ("bare Python start", "bare_ms")):
        yield f"{label:<39}{found[name]['p50']:>9.0f}{found[name]['p95']:>9.0f}"
    outputs = found["outputs"]
    yield f"{outputs['replaced']} tool outputs: {outputs['before']:,} tokens, {outputs['after']:,} in their place"
    if found["first_prompts"]:
        yield f"{'first prompt of a session':<32}{'answered':>14}{'p50 ms':>9}{'p95 ms':>9}{'cpu':>7}{'floor':>9}"
    for row in found["first_prompts"]:
        answered = f"{row['answered']} of {row['prompts']}"
        yield (
            f"{row['condition']:<32}{answered:>14}{row['ms']['p50']:>9.0f}{row['ms']['p95']:>9.0f}"
            f"{row['cpu_ms']['p50']:>7.0f}{row['bare_ms']['p50']:>9.0f}"
        )


def shown(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the text that each event of a round added, or put in place of an output, under a heading."""
    for run in runs:
        about = run.event.told.get("prompt") or run.event.told.get("tool_input", {}).get("command", "")
        texts = [run.added] if run.added else []
        if run.replaced is not None:
            texts.append(run.replaced if isinstance(run.replaced, str) else json.dumps(run.replaced, indent=1))
        for text in texts:
            yield f"--- {run.event.label}: {about} ({tokens_of(text)} tokens)\n{text}\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.hooks", description="A recorded session through the hooks.")
    parser.add_argument("--turns", type=int, default=2_000, metavar="N", help="stored before; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--prompts", type=int, default=100, metavar="N", help="first prompts in each condition; default: %(default)s"
    )
    parser.add_argument("--server", type=float, metavar="MS", help="a server whose answers take so many ms longer")
    parser.add_argument("--show", action="store_true", help="print what was added to the context")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures there")
    options = parser.parse_args(arguments)
    if options.turns < 0 or options.rounds < 1 or options.prompts < 0:
        parser.error("--turns and --prompts have to be 0 or more, --rounds 1 or more")
    rounds, first = measure(
        turns=options.turns, rounds=options.rounds, prompts=options.prompts, server_ms=options.server
    )
    if options.show:
        print("\n".join(shown(rounds[0])))
    found = summary(rounds, first)
    print("\n".join(table(found)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
