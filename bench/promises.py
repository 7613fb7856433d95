"""Measures whether promises are recalled: `python -m bench.promises [--held]`

`fixtures/promises` has turns that state a promise, with prompts that trigger it in the same words (`same`) or in other
words (`other`), near misses (`near`), and ordinary prompts (`none`). For `promises`, all are remembered in one memory,
where each prompt starts a session. For `groups of 12`, twelve are open at a time, each with the text before it in its
turn, as if they had been extracted from their turns.

    same, other   share of the prompts for which automatic recall shows the promise
    near          share of the near misses for which it is shown nevertheless
    none          share of the ordinary prompts for which any promise is shown

For comparison: *words*, by the share of the trigger's words that the prompt has, and *turns*, automatic recall of the
same turns without promises. `parts` compares trigger, message and first day with those that the author marked by hand;
a part counts as right if it has four fifths of the words, and no more than a quarter in addition.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import anyio

from bench.promise_sets import LabelledPromise, read_promises, read_prompts
from mcp_memory.core.types import Atom, NewTurn
from mcp_memory.language.words import index_terms
from mcp_memory.longterm.promise_parts import parse_promise
from mcp_memory.longterm.promises import Promise, called_for, with_words_before
from mcp_memory.service.memory import Memory, open_memory

Shown = Callable[[LabelledPromise, str], Awaitable[bool]]
AnyShown = Callable[[str], Awaitable[bool]]
GROUPS = ("same", "other", "near")
TOGETHER = 12
HALF = 0.5


async def shares(promises: Sequence[LabelledPromise], none: Sequence[str], shown: Shown, any_shown: AnyShown) -> str:
    """Return a row of the table: the share of the prompts of each group."""
    found = [
        fmean([await shown(promise, prompt) for promise in promises for prompt in getattr(promise, group)])
        for group in GROUPS
    ]
    found.append(fmean([await any_shown(prompt) for prompt in none]))
    return "  ".join(f"{share:6.1%}" for share in found)


def parts_right(promises: Sequence[LabelledPromise]) -> str:
    """Return how many triggers, messages and days are parsed as the author marked them."""
    parsed = [(one, parse_promise(one.promise, one.said_at)) for one in promises]
    triggers = sum(_is_same(parts.trigger, one.trigger) for one, parts in parsed)
    said = sum(_is_same(parts.say, one.say) for one, parts in parsed)
    days = sum(parts.due == one.due for one, parts in parsed)
    return f"trigger {triggers}, to say {said}, day {days} of {len(promises)}"


def _is_same(cut: str, wanted: str) -> bool:
    have, want = set(index_terms(cut)), set(index_terms(wanted))
    return len(have & want) >= 0.8 * len(want) and len(have - want) <= 0.25 * len(want)


async def _remembered(memory: Memory, promises: Sequence[LabelledPromise]) -> tuple[Shown, AnyShown]:
    ids: dict[str, str] = {}
    for one in promises:
        when = one.said_at.isoformat()
        ids[one.promise] = (await memory.remember(one.promise, kind="promise", valid_from=when, typed=True)).atom.id

    async def brought(prompt: str) -> str:
        return (await memory.recall_beyond(prompt, known="", session="now", is_rehearsal=True)).dynamic

    async def shown(promise: LabelledPromise, prompt: str) -> bool:
        return f", open ({ids[promise.promise]}):" in await brought(prompt)

    async def any_shown(prompt: str) -> bool:
        return ", open (a" in await brought(prompt)

    return shown, any_shown


async def _as_turns(memory: Memory, promises: Sequence[LabelledPromise]) -> tuple[Shown, AnyShown]:
    for number, one in enumerate(promises):
        turn = NewTurn(role="user", content=one.turn, said_at=one.said_at)
        await memory.record_turns([turn], session=f"s{number}")

    async def brought(prompt: str) -> str:
        return (await memory.recall_beyond(prompt, known="", session="now", is_rehearsal=True)).dynamic

    async def shown(promise: LabelledPromise, prompt: str) -> bool:
        return promise.promise[:40] in await brought(prompt)

    async def any_shown(prompt: str) -> bool:
        text = await brought(prompt)
        return any(one.promise[:40] in text for one in promises)

    return shown, any_shown


def _by_words(promises: Sequence[LabelledPromise]) -> tuple[Shown, AnyShown]:
    terms = {one.promise: set(index_terms(parse_promise(one.promise, one.said_at).about)) for one in promises}

    def has(promise: LabelledPromise, prompt: str) -> bool:
        wanted = terms[promise.promise]
        return bool(wanted) and len(wanted.intersection(index_terms(prompt))) > HALF * len(wanted)

    async def shown(promise: LabelledPromise, prompt: str) -> bool:
        return has(promise, prompt)

    async def any_shown(prompt: str) -> bool:
        return any(has(one, prompt) for one in promises)

    return shown, any_shown


def _in_groups(promises: Sequence[LabelledPromise]) -> tuple[Shown, AnyShown]:
    """Judge without a memory, twelve promises open at a time: the one in question and the next eleven."""
    opened = [_open(number, one) for number, one in enumerate(promises)]
    number_of = {one.promise: number for number, one in enumerate(promises)}
    now = max(one.said_at for one in promises)

    def group(first: int) -> list[Promise]:
        return [opened[(first + step) % len(opened)] for step in range(min(TOGETHER, len(opened)))]

    async def shown(promise: LabelledPromise, prompt: str) -> bool:
        first = number_of[promise.promise]
        return opened[first] in called_for(group(first), prompt, now)

    async def any_shown(prompt: str) -> bool:
        return bool(called_for(group(len(prompt) % len(opened)), prompt, now))

    return shown, any_shown


def _open(number: int, one: LabelledPromise) -> Promise:
    atom = Atom(
        id=f"a{number}", kind="instruction", text=one.promise, priority=80, confidence=1.0, evidence=f"t{number}",
        span=(0, 0), valid_from=one.said_at, valid_to=None, learned_at=one.said_at, label="promise",
    )  # fmt: skip
    parts = parse_promise(one.promise, one.said_at)
    context = with_words_before(one.turn, one.promise)
    return Promise(atom=atom, said_at=one.said_at, parts=parts, context=context)


async def main(*, part: str) -> None:
    promises, none = read_promises(part), [text for _, text in read_prompts(part)]
    subjects = [one for one in promises if not one.is_date]
    print(f"parts: {parts_right(promises)}")
    print(f"{len(subjects)} open       same   other    near    none")
    with TemporaryDirectory() as home:
        async with open_memory(home=Path(home)) as memory:
            print("promises     ", await shares(subjects, none, *await _remembered(memory.in_space("kept"), subjects)))
            print("groups of 12 ", await shares(subjects, none, *_in_groups(subjects)))
            print("words        ", await shares(subjects, none, *_by_words(subjects)))
            print("turns        ", await shares(subjects, none, *await _as_turns(memory.in_space("said"), subjects)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", action="store_true", help="the held-out part instead of the development part")
    anyio.run(lambda: main(part="held" if parser.parse_args().held else "dev"))
