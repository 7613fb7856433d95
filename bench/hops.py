"""How much code a warm call runs: `python -m bench.hops [--list VERB]`

Fills a memory of some sixty turns (rules, promises, dates, changed values, two offloaded results) through
`open_memory()`, calls each verb until everything is loaded, then counts the functions of `mcp_memory` that a
further call enters, and their files. Only the threads that answer the call count, not the background. Generator
expressions, lambdas and nested functions count as their enclosing function. Results are not cached: the counted call
has new arguments.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Literal

import anyio

import mcp_memory
from bench.ours import until_indexed
from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
NOW = START + timedelta(days=27)
BACKGROUND = ("indexing", "scheduler", "recall-log")
PACKAGE = Path(mcp_memory.__file__).parent

TALK: dict[int, list[tuple[Literal["user", "assistant"], str]]] = {
    0: [
        ("user", "Hi, I am Nora. I work as a backend developer at Lindt Logistics in Graz."),
        ("assistant", "Nice to meet you, Nora. What are you working on?"),
        ("user", "The tracking service. It runs Python 3.11 and PostgreSQL 14 on two servers in Vienna."),
        ("assistant", "Understood: Python 3.11, PostgreSQL 14, two servers in Vienna."),
        ("user", "Always write commit messages in the imperative, and never push to main directly."),
        ("assistant", "I will use the imperative and open pull requests."),
        ("user", "The deploy script takes eleven minutes, mostly because the image is built twice."),
        ("assistant", "Caching the first stage would halve that."),
        ("user", "Ok, thanks!"),
    ],
    1: [
        ("user", "I am allergic to hazelnuts, so keep them out of every recipe."),
        ("assistant", "Noted, no hazelnuts."),
        ("user", "My daughter Mila turns six on 14 April. She wants a cake with a dragon on it."),
        ("assistant", "A dragon cake for Mila on 14 April, without hazelnuts."),
        ("user", "Remind me on Friday to order the marzipan."),
        ("assistant", "I will remind you on Friday."),
        ("user", "Yesterday we were at the lake in Thal, and Mila lost her red boot there."),
        ("assistant", "Did you look at the boat hire? They keep lost things."),
    ],
    4: [
        ("user", "The tracking service loses about two messages an hour. The queue is RabbitMQ 3.9."),
        ("assistant", "Are the consumers acknowledging before or after they write?"),
        ("user", "Before. That was Jonas's decision in 2024, to keep the queue short."),
        ("assistant", "Then a crash between the two loses the message. Acknowledge after the commit."),
        ("user", "Please answer in short sentences, I read this on my phone."),
        ("assistant", "Will do."),
        ("user", "What does prefetch do again?"),
        ("assistant", "It limits the unacknowledged messages that a consumer has."),
    ],
    8: [
        ("user", "We moved the database: it is PostgreSQL 16 now, on a managed server in Frankfurt."),
        ("assistant", "PostgreSQL 16 in Frankfurt, managed."),
        ("user", "The migration took four hours, from 22:00 to 2:00, and one index was missing afterwards."),
        ("assistant", "Which one?"),
        ("user", "The one on shipments(customer_id, created_at). I created it concurrently this morning."),
        ("assistant", "Good. Analyse the table as well, since its statistics are empty."),
        ("user", "I'll send you the slow queries on Wednesday."),
        ("assistant", "I will look at them on Wednesday."),
    ],
    11: [
        ("user", "Ich habe gestern mit Jonas gesprochen, er wechselt im Mai zum Team Abrechnung."),
        ("assistant", "Dann braucht die Sendungsverfolgung jemanden, der die Queue kennt."),
        ("user", "Ja, Petra übernimmt. Sie fängt am 4. Mai an."),
        ("assistant", "Petra ab dem 4. Mai, notiert."),
        ("user", "My budget for the offsite is 3,200 euros, for nine people and two nights."),
        ("assistant", "That is about 178 euros a person and night."),
        ("user", "The hotel in Bad Aussee asks 95 euros a night, the one in Schladming 120."),
        ("assistant", "Bad Aussee leaves 1,490 euros for meals and the train."),
    ],
    15: [
        ("user", "From now on use tabs in Makefiles only, and four spaces everywhere else."),
        ("assistant", "Tabs in Makefiles, four spaces elsewhere."),
        ("user", "The dentist moved my appointment from Tuesday to Thursday at 16:30."),
        ("assistant", "Thursday at 16:30 it is."),
        ("user", "I started running again: five kilometres on Monday, seven on Saturday."),
        ("assistant", "Well done. Leave a day between them."),
        ("user", "Tell Petra about the missing index when she starts."),
        ("assistant", "I will draft a note for Petra about the index."),
    ],
    19: [
        ("user", "Forget the rule about short sentences, I am back at my desk."),
        ("assistant", "Longer answers again, then."),
        ("user", "The budget was raised: it is 4,000 euros now, for ten people."),
        ("assistant", "That is 200 euros a person and night."),
        ("user", "We booked Schladming for 12 to 14 June."),
        ("assistant", "Schladming, 12 to 14 June."),
        ("user", "The queue lost nothing since we acknowledge after the commit."),
        ("assistant", "Then the cause was the early acknowledgement."),
    ],
    25: [
        ("user", "I finished Middlemarch last night and started The Leopard."),
        ("assistant", "How did you like the end?"),
        ("user", "Better than the middle. Mila wants me to read her the dragon book again instead."),
        ("assistant", "The one from the library in Eggenberg?"),
        ("user", "Yes, it is due back on 2 April."),
    ],
}

QUESTIONS = (
    "Who takes over the queue from Jonas?",
    "What did I say about the cake for Mila?",
    "How large is the budget for the offsite?",
    "Write a commit message for the missing index",
    "What happened last week?",
)
ASKED = "Which version of PostgreSQL does the tracking service use, and where does the database run?"
NEW_TURNS = (
    NewTurn(role="user", content="RabbitMQ is 3.13 now. Always restart the consumers after an upgrade."),
    NewTurn(role="assistant", content="RabbitMQ 3.13. I will remind you to restart the consumers tomorrow."),
)


def log(lines: int, *, seed: int) -> str:
    """Return a tool result that is long enough to be offloaded."""
    services = ("tracking", "billing", "queue")
    rows = [
        f"2026-03-{1 + number % 28:02} 10:{number % 60:02}:00 {'ERROR' if number % 17 == seed else 'INFO'} "
        f"{services[(number + seed) % 3]} request={number * 7919 % 10_007} took {number * seed % 97} ms"
        for number in range(lines)
    ]
    return "\n".join(rows)


async def fill(memory: Memory) -> None:
    for day, turns in TALK.items():
        said_at = START + timedelta(days=day)
        new = [NewTurn(role=role, content=text, said_at=said_at) for role, text in turns]
        await memory.record_turns(new, session=f"day-{day}")
    for seed in (3, 5):
        await memory.offload_tool_result("bash", log(900, seed=seed), arguments={"command": f"cat service-{seed}.log"})
    await until_indexed(memory)


VERBS: dict[str, Callable[[Memory, str], Awaitable[object]]] = {
    "recall": lambda memory, text: memory.recall(text, session="day-25"),
    "conversation_search": lambda memory, text: memory.conversation_search(text),
    "record_turns": lambda memory, text: memory.record_turns(
        [*NEW_TURNS, NewTurn(role="user", content=text)], session="new"
    ),
    "offload_tool_result": lambda memory, text: memory.offload_tool_result(
        "bash", log(900, seed=len(text)), arguments={"command": text}
    ),
}


async def measure() -> dict[str, dict[str, list[str]]]:
    """Return the functions that each verb runs, by file."""
    functions: dict[str, dict[str, list[str]]] = {}
    with TemporaryDirectory(prefix="bench-") as home, entered() as start:
        async with open_memory(Settings(home=Path(home)), now=lambda: NOW) as memory:
            await fill(memory)
            for verb, call in VERBS.items():
                for text in QUESTIONS:
                    await call(memory, text)
                await until_indexed(memory)
                codes = start()
                await call(memory, ASKED)
                start()  # nothing is added to `codes` from here on
                functions[verb] = by_file(codes)
    return functions


@contextmanager
def entered() -> Generator[Callable[[], set[CodeType]]]:
    """Yield a function that starts a new set, which receives the code of each function entered from then on."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and threading.current_thread().name not in BACKGROUND:
            codes.add(frame.f_code)

    def start() -> set[CodeType]:
        nonlocal codes
        codes = set()
        return codes

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield start
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # pyright: ignore[reportArgumentType]


def by_file(codes: set[CodeType]) -> dict[str, list[str]]:
    files: dict[str, set[str]] = {}
    for code in codes:
        path = Path(code.co_filename)
        name = code.co_qualname.split(".<locals>")[0]
        if path.is_relative_to(PACKAGE) and not name.startswith("<"):
            files.setdefault(str(path.relative_to(PACKAGE)), set()).add(name)
    return {file: sorted(names) for file, names in sorted(files.items())}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.hops", description="Count the functions that one warm call runs.")
    parser.add_argument("--list", choices=VERBS, metavar="VERB", help="list the functions of a verb by file")
    options = parser.parse_args(arguments)
    functions = anyio.run(measure)
    for verb, files in functions.items():
        print(f"{verb:<22}{sum(map(len, files.values())):>5} functions {len(files):>4} files")
    for file, names in functions.get(options.list, {}).items():
        print(f"\n{file} ({len(names)})")
        print("\n".join(f"  {name}" for name in names))


if __name__ == "__main__":
    main()
