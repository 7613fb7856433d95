"""Measures each server: start, definitions, storing, searching, size, more clients, `kill -9`, two writers."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Any

from tqdm import tqdm

from bench.peers.installing import Installed, command_of, environment, prepare
from bench.peers.programs import Program
from bench.peers.story import QUESTIONS, Message, messages, unique
from bench.peers.wire import Refused, Wire, processes_of
from bench.servers import memory_of
from bench.stats import timings_ms
from mcp_memory.core.token_counts import token_counter

BATCH = 50
MIB = 2**20


@dataclass(slots=True)
class Candidate:
    """A server under measurement with its figures. `failed` is the reason why measuring ended early."""

    program: Program
    there: Installed
    folder: Path
    figures: dict[str, Any] = field(default_factory=dict[str, Any])
    failed: str = ""
    wire: Wire | None = None
    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def open(self, home: str) -> Wire:
        place = self.folder / home
        if not place.exists():
            place.mkdir(parents=True)
            prepare(self.program, place)
        given = {name: value.replace("{home}", str(place)) for name, value in self.program.env.items()}
        env = environment() | {"HOME": str(place), "TMPDIR": str(place)} | given
        return Wire(command_of(self.program, self.there, place), home=place, env=env)

    @contextmanager
    def running(self, home: str) -> Generator[Wire]:
        with self.open(home) as wire:
            wire.initialize()
            yield wire

    @contextmanager
    def trying(self, what: str) -> Generator[None]:
        """Record a refusal as the reason why measuring ends."""
        try:
            yield
        except Refused as error:
            self.failed = f"{what}: {error}"
            if self.wire is not None:
                self.wire.kill()

    def timed(self, what: str, started: float) -> None:
        self.seconds.setdefault(what, []).append(perf_counter() - started)


def initialize(candidates: Sequence[Candidate], times: int) -> None:
    """Start the servers in turn over empty homes; the first start of each, which reads its files, is not counted."""
    for number in range(times + 1):
        for one in alive(candidates):
            with one.trying("start"):
                started = perf_counter()
                with one.open(f"start-{number}") as wire:
                    wire.initialize()
                    if number:
                        one.timed("initialize", started)


def count_definitions(candidates: Sequence[Candidate]) -> None:
    for one in alive(candidates):
        with one.trying("tools"), one.running("start-0") as wire:
            tools = wire.tools()
            one.figures |= {"tools": len(tools), "definition_tokens": sum(tokens(_definition(tool)) for tool in tools)}


def _definition(tool: Mapping[str, Any]) -> str:
    """Return the definition of a tool as a model gets it: name, description and schema."""
    given = {"name": tool["name"], "description": tool.get("description", ""), "input_schema": tool["inputSchema"]}
    return json.dumps(given, ensure_ascii=False)


def fill(candidates: Sequence[Candidate], turns: int) -> None:
    """Start each server for the rounds, with `turns` messages in its home."""
    for one in alive(candidates):
        with one.trying("fill"):
            one.wire = one.open("home")
            one.wire.initialize()
            if one.program.stores:
                size = BATCH if one.program.batch else 1
                told = messages(turns)
                for place in tqdm(range(0, turns, size), desc=f"fill {one.program.name}", leave=False):
                    one.program.store(one.wire, told[place : place + size])


def rounds(candidates: Sequence[Candidate], *, batches: int) -> None:
    """Store and search in turn: a question and a message per round, and a batch in some of the first rounds."""
    others = [Message(f"late-{number:05d}", text) for number, text in enumerate(unique(2_000, seed=1))]
    right: dict[str, list[bool]] = {}
    sizes: dict[str, list[int]] = {}
    for number, question in enumerate(tqdm(QUESTIONS, desc="rounds", leave=False)):
        for one in alive(candidates):
            with one.trying("round"):
                assert one.wire is not None
                if number == 0:
                    one.program.search(one.wire, "the garden")  # loads what is loaded on first use
                started = perf_counter()
                answer = one.program.search(one.wire, question.text)
                one.timed("search", started)
                if one.program.stores:
                    key = next(told.key for told in messages(one.figures["turns"]) if told.text == question.answer)
                    right.setdefault(one.program.name, []).append(one.program.found(answer, question.answer, key))
                    sizes.setdefault(one.program.name, []).append(tokens(answer))
                    started = perf_counter()
                    one.program.store(one.wire, [others.pop()])
                    one.timed("store", started)
                if one.program.batch and number < batches:
                    some = [others.pop() for _ in range(BATCH)]
                    started = perf_counter()
                    one.program.store(one.wire, some)
                    one.timed("store_batch", started)
    for one in alive(candidates):
        one.figures["resident_mb"] = _resident(one.folder / "home")
        if not one.program.stores:
            continue
        found = right[one.program.name]
        for name, same in (("found_same_words", True), ("found_other_words", False)):
            one.figures[name] = sum(
                hit for hit, asked in zip(found, QUESTIONS, strict=True) if asked.same_words == same
            )
        one.figures["answer_tokens"] = round(sum(sizes[one.program.name]) / len(found))


def connect_more(candidates: Sequence[Candidate], clients: int) -> None:
    """Start servers on the home of the rounds until it has `clients`, each of which searches; then end all of them."""
    for one in alive(candidates):
        with one.trying(f"{clients} clients"), ExitStack() as stack:
            for _ in range(1, clients):
                started = perf_counter()
                wire = stack.enter_context(one.open("home"))
                wire.initialize()
                one.timed("next_initialize", started)
                one.program.search(wire, QUESTIONS[0].text)
            one.figures["clients_mb"] = _resident(one.folder / "home")
        assert one.wire is not None
        one.wire.kill()
        if one.program.stores:
            one.figures["disk_mb"] = _disk(one.folder / "home")


def kill_after_writes(candidates: Sequence[Candidate], kills: int) -> None:
    """Kill each server after each acknowledged write; then start it again and count the writes that it finds."""
    told = [Message(f"kill-{number:05d}", text) for number, text in enumerate(unique(kills, seed=2))]
    for one in alive(candidates):
        if one.program.stores:
            with one.trying("kill"):
                for message in tqdm(told, desc=f"kill {one.program.name}", leave=False):
                    with one.running("killed") as wire:
                        one.program.store(wire, [message])
                with one.running("killed") as wire:
                    one.figures["kept"] = len(one.program.kept(wire, told))


def two_writers(candidates: Sequence[Candidate], writes: int) -> None:
    """Let two servers on one home store `writes` messages at the same time; count those refused and those lost."""
    told = [Message(f"both-{number:05d}", text) for number, text in enumerate(unique(writes, seed=3))]
    for one in alive(candidates):
        if one.program.stores:
            with one.trying("two servers"), one.running("two") as first, one.running("two") as second:
                one.program.store(first, [Message("both-first", "The first message of all is about two servers.")])
                acknowledged: list[Message] = []

                def write(
                    wire: Wire, some: Sequence[Message], one: Candidate = one, done: list[Message] = acknowledged
                ):
                    for message in some:
                        with suppress(Refused):
                            one.program.store(wire, [message])
                            done.append(message)

                threads = [
                    Thread(target=write, args=(first, told[::2])),
                    Thread(target=write, args=(second, told[1::2])),
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                first.kill()
                second.kill()
                with one.running("two") as last:
                    kept = one.program.kept(last, acknowledged)
                one.figures["refused"] = len(told) - len(acknowledged)
                one.figures["lost"] = len(acknowledged) - len(kept)


def alive(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield the servers that have not failed."""
    yield from (one for one in candidates if not one.failed)


def summed_up(one: Candidate) -> dict[str, Any]:
    """Return all figures of a server, timings in milliseconds."""
    timings = {f"{name}_ms": timings_ms(taken) for name, taken in one.seconds.items()}
    weight = {"version": one.there.version, "installed_mb": one.there.megabytes, "packages": one.there.packages}
    return {"name": one.program.name, "licence": one.program.licence, **weight, **one.figures, **timings}


def tokens(text: str) -> int:
    return token_counter("o200k_base").count(text)


def _resident(home: Path) -> float:
    """Return the megabytes of all processes of a home."""
    return round(sum(memory_of(pid).get("VmRSS", 0.0) for pid in processes_of(home)), 1)


def _disk(home: Path) -> float:
    files = (path for path in home.rglob("*") if path.is_file() and not path.is_symlink())
    return round(sum(path.stat().st_size for path in files if path.name != "stderr.log") / MIB, 1)
