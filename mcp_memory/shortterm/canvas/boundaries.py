"""Detect where one task ends and another begins, by the messages since its last step.

Guarantees: pure and deterministic; cautious: when in doubt the task goes on. The user's words count; the agent's only
where they say that the task is done. Text in code, in quotes and far down a long message is skipped.

Three things begin a new task: words that say so ("next task: …", "let's move on to …"); "now …" after a task was said
to be done, or a request in a later message than the one that said so; and "now let's build …" that shares no word with
the task. "Back to …" takes up the earlier task that its words name. A task that is said to be done goes on until
something else begins: steps until then belong to it.

The words are in `boundaries.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from mcp_memory.core.types import Role
from mcp_memory.language import patterns_of
from mcp_memory.shortterm.canvas.flowchart import clean
from mcp_memory.shortterm.canvas.tasks import content, is_task

LISTENED = 600
"""Characters of a message that are read."""
GOAL_WORDS = 120

_SKIPPED = re.compile(
    r"```.*?(?:```|$)|`[^`\n]*`|^\s*>.*$|\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|«[^»\n]{0,200}»", re.DOTALL | re.MULTILINE
)
_ASKS = re.compile(r"[?？]\s*$")
_PUNCTUATION = " \t,:;.!?–—-：，。、"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryVerdict:
    """`new`: the goal of a task that begins. `back`: the words of an earlier one, "" for the one before.

    Both None: the task goes on. `done`: the task so far was said to be finished.
    """

    new: str | None = None
    back: str | None = None
    done: bool = False


GOES_ON = BoundaryVerdict()


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Return the patterns by kind, those of all languages as alternatives."""
    sources: dict[str, list[str]] = {}
    for head, source in patterns_of("mcp_memory.shortterm.canvas", "boundaries.txt"):
        sources.setdefault(head.partition(" ")[0], []).append(source)
    ends = {"also": r"(?!\w)", "thanks": r"(?!\w)"}
    return {
        kind: re.compile(f"(?:{'|'.join(f'(?:{one})' for one in found)}){ends.get(kind, '')}", re.IGNORECASE)
        for kind, found in sources.items()
    }


def boundary(said: Sequence[tuple[Role, str]], *, about: Collection[str]) -> BoundaryVerdict:
    """Return the verdict of these messages, oldest first; `about` are the content terms of the task so far."""
    done_before, verdict = False, GOES_ON
    for role, text in said:
        done_here = False
        waiting = False  # for the name of a task that was announced
        for clause in _clauses(text):
            if _says_done(clause) and (role == "user" or " with " not in clause):
                done_here = True
            elif role == "user":
                verdict, waiting = _heard(
                    clause, verdict, waiting=waiting, done_here=done_here, done_before=done_before, about=about
                )
        done_before = done_before or done_here
    return replace(verdict, done=done_before)


def _heard(
    clause: str, verdict: BoundaryVerdict, *, waiting: bool, done_here: bool, done_before: bool, about: Collection[str]
) -> tuple[BoundaryVerdict, bool]:
    """Return the verdict after one clause of the user's, and whether the next has to name a task."""
    patterns = _patterns()
    firm = patterns["hesitates"].sub("", clause, count=1)
    if found := patterns["back"].match(firm):
        named = next((each for each in found.groups() if each), "") or firm[found.end() :]
        words = _bare(named)
        return BoundaryVerdict(back="" if patterns["earlier"].match(words) or not words else words), False
    if found := patterns["new"].match(firm):
        rest = firm[found.end() :]
        goal = _goal(rest)
        return (BoundaryVerdict(new=goal), False) if goal else (verdict, not _bare(rest))
    goal = _goal(clause)
    if waiting and goal:
        return BoundaryVerdict(new=goal), False
    if found := patterns["now"].match(clause):
        goal = _goal(clause[found.end() :])
        begins = patterns["together"].match(clause) and patterns["begins"].match(goal)
        new = done_here or done_before or (begins and _is_unrelated(goal, about))
    else:
        follows = patterns["also"].match(clause) or patterns["thanks"].match(clause)
        fresh = done_before and not done_here and verdict == GOES_ON and not follows
        new = fresh and _is_unrelated(goal, about)
    return (BoundaryVerdict(new=goal), False) if goal and new else (verdict, False)


def _is_unrelated(goal: str, about: Collection[str]) -> bool:
    terms = content(goal)
    return len(terms) >= 2 and not terms & frozenset(about)


def _says_done(clause: str) -> bool:
    patterns = _patterns()
    return bool(patterns["done"].match(clause)) and not _ASKS.search(clause) and not patterns["hedged"].search(clause)


def _clauses(text: str) -> Iterator[str]:
    patterns = _patterns()
    for part in patterns["breaks"].split(_SKIPPED.sub(" ", text[: 4 * LISTENED])[:LISTENED]):
        if clause := part.strip():
            lead = patterns["lead"].match(clause)
            yield ((clause[lead.end() :] if lead else "") or clause).replace("’", "'")


def _bare(words: str) -> str:
    """Return the words without punctuation, politeness and what only rounds a request off."""
    words = _patterns()["at_the_end"].sub("", words.strip(_PUNCTUATION))
    while (found := _patterns()["polite"].match(words)) and found.end() < len(words):
        words = words[found.end() :]
    return words.strip(_PUNCTUATION)


def _goal(words: str) -> str:
    """Return the name of a task, "" where the words make none: a report, or the next part of the same task."""
    patterns = _patterns()
    goal = clean(_bare(words), GOAL_WORDS)
    continues = patterns["told"].match(goal) or patterns["part"].match(goal)
    return goal if sum(map(str.isalpha, goal)) >= 2 and not continues and is_task(goal) else ""
