"""Where one task ends and another begins, by what was said since its last step.

Guarantees: pure and deterministic; cautious: when in doubt the task goes on. What the user says counts; of what the
agent says only that the task is done. Text in code, in quotes and far down a long message is not listened to.

A new task is begun by words that say so ("next task: …", "let's move on to …"), by "now …" after a task was said to be
done, by a request in a later message than the one that said so, and by "now let's build …" that shares no word with
the task. "Back to …" takes up the earlier task that its words mean. A task that is said to be done goes on all the
same until something else begins: what is done about it belongs to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mcp_memory.core.types import Role
from mcp_memory.shortterm.canvas.boundary_words import ALSO, BACK, BREAKS, DONE, EARLIER, HEDGED, LEAD, NEW, NOW, THANKS
from mcp_memory.shortterm.canvas.label import clean
from mcp_memory.shortterm.canvas.tasks import content, is_task

__all__ = ["GOES_ON", "Verdict", "boundary"]

LISTENED = 600
"""Characters of a message that are listened to."""
GOAL_WORDS = 120

_UNHEARD = re.compile(
    r"```.*?(?:```|$)|`[^`\n]*`|^\s*>.*$|\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|«[^»\n]{0,200}»", re.DOTALL | re.MULTILINE
)
_ASKS = re.compile(r"[?？]\s*$")
_AT_THE_END = re.compile(r"[\s,]+(?:please|now|again|thanks|bitte|svp|por favor)$", re.IGNORECASE)
_HESITATES = re.compile(
    r"(?:(?:wait|hey|hm+|oh|actually|sorry|moment|warte|ach|attends|espera|aspetta|подожди|等等|待って|잠깐)(?!\w)[\s,.!…–—-]*)+",
    re.IGNORECASE,
)
_TOGETHER = re.compile(r"(?:now|next),? (?:let's|let us|we'll|can you|could you|please)(?!\w)", re.IGNORECASE)
_BEGINS = re.compile(
    r"(?:start |begin )?(?:to |by )?(?:add|book|build|create|design|draft|find|implement|migrate|organi[sz]e|plan"
    r"|prepare|research|set up|translate|write)(?!\w)",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"(?:i|it|we|you|he|she|they|that|this|there|ich|es|wir|das|je|il|elle|yo|io|eu|я|он|она)(?!\w)", re.IGNORECASE
)
_PART = re.compile(
    r"(?:the |our )?(?:next|following|others?|another|rest|(?:(?:first|second|third|fourth|last|final) )?"
    r"(?:step|phase|part|point|item|file|section|stage|chapter|test|one|page|thing)s?)(?!\w)",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:please|let's|let us|can you|could you|would you|we(?:'ll| will| can| should)|i(?:'d like| want) (?:you )?to|to"
    r"|the|bitte|kannst du|lass uns|s'il te plaît|por favor|per favore|请|帮我|пожалуйста)(?!\w)[\s,:;–—-]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`new`: the goal of a task that begins. `back`: the words of an earlier one, "" for the one before.

    Both None: the task goes on. `done`: the task so far was said to be finished.
    """

    new: str | None = None
    back: str | None = None
    done: bool = False


GOES_ON = Verdict()


def boundary(said: Sequence[tuple[Role, str]], *, about: Collection[str]) -> Verdict:
    """Return what was said of the task, oldest message first; `about` are the content terms of the task so far."""
    done_before, verdict = False, GOES_ON
    for role, text in said:
        done_here = False
        waiting = False  # for the name of a task that was announced
        for clause in _clauses(text):
            asks = bool(_ASKS.search(clause))
            if _says_done(clause, asks) and (role == "user" or " with " not in clause):
                done_here = True
                continue
            if role != "user":
                continue
            verdict, waiting = _heard(
                clause, verdict, waiting=waiting, done_here=done_here, done_before=done_before, about=about
            )
        done_before = done_before or done_here
    if verdict.new is None and verdict.back is None:
        return Verdict(done=done_before)
    return Verdict(new=verdict.new, back=verdict.back, done=done_before)


def _heard(
    clause: str, verdict: Verdict, *, waiting: bool, done_here: bool, done_before: bool, about: Collection[str]
) -> tuple[Verdict, bool]:
    """What one clause of the user's adds, and whether the next has to name a task."""
    firm = _HESITATES.sub("", clause, count=1)
    if found := BACK.match(firm):
        named = next((each for each in found.groups() if each), "") or firm[found.end() :]
        words = _bare(named)
        return Verdict(back="" if EARLIER.match(words) or not words else words), False
    if found := NEW.match(firm):
        rest = firm[found.end() :]
        return (Verdict(new=_goal(rest)), False) if _goal(rest) else (verdict, not _bare(rest))
    goal = _goal(clause)
    if waiting and goal:
        return Verdict(new=goal), False
    if found := NOW.match(clause):
        goal = _goal(clause[found.end() :])
        strange = bool(_TOGETHER.match(clause) and _BEGINS.match(goal)) and _strange(goal, about)
        if goal and (done_here or done_before or strange):
            return Verdict(new=goal), False
        return verdict, False
    fresh = done_before and not done_here and verdict == GOES_ON and not ALSO.match(clause) and not THANKS.match(clause)
    if fresh and goal and _strange(goal, about):
        return Verdict(new=goal), False
    return verdict, False


def _strange(goal: str, about: Collection[str]) -> bool:
    """Whether it has words of its own and none of the task's."""
    told = content(goal)
    return len(told) >= 2 and not told & frozenset(about)


def _says_done(clause: str, asks: bool) -> bool:
    return bool(DONE.match(clause)) and not asks and not HEDGED.search(clause)


def _clauses(text: str) -> Iterator[str]:
    heard = _UNHEARD.sub(" ", text[: 4 * LISTENED])[:LISTENED]
    for part in BREAKS.split(heard):
        clause = part.strip()
        if clause:
            bare = (
                LEAD.sub("", clause, count=1) if (found := LEAD.match(clause)) and found.end() < len(clause) else clause
            )
            yield bare.replace("’", "'")


def _bare(words: str) -> str:
    words = _AT_THE_END.sub("", words.strip(" \t,:;.!?–—-：，。、"))
    while (found := _POLITE.match(words)) and found.end() < len(words):
        words = words[found.end() :]
    return words.strip(" \t,:;.!?–—-：，。、")


def _goal(words: str) -> str:
    """The name of a task, if the words make one: not what somebody tells, and not the next part of the same."""
    goal = clean(_bare(words), GOAL_WORDS)
    named = sum(char.isalpha() for char in goal) >= 2
    return goal if named and not _TOLD.match(goal) and not _PART.match(goal) and is_task(goal) else ""
