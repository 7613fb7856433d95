"""Decides which edits to make in a list of messages. Pure: the same list gives the same plan.

Guarantees: a call and its results go together or stay together; system messages are never changed; the first and last
words of the user are never removed, and shortened only in an emergency; a plan is a batch that pays by the rules, or a
batch that the window requires.

A provider caches the beginning of a prompt and reads it again at a fraction of the price. An edit of an old message
invalidates the cache from there on: everything behind it is read at full price once. In return every later call is
shorter. So edits are made in batches, and a batch has to be worth it:

    saves   removed x cached_price x (this call and those expected)
    costs   tokens behind the first edit that were sent before x (1 - cached_price)

The number of further calls is unknown. Without `further_calls` as many are expected as there were: the best single
guess, which keeps the first batch from being made too early. A batch that only just pays is better postponed, since the
next calls bring more to remove behind the same break: hence `worth`.

Results whose names occur in the model's newest messages are still in use, and are not removed first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import Any, Literal, get_args

from mcp_memory.core.errors import InvalidInput
from mcp_memory.service.compression.message_lists import ListMessage, units
from mcp_memory.store.values import MessageEdit

Level = Literal["none", "mild", "aggressive", "emergency"]
LEVELS: tuple[Level, ...] = get_args(Level)

MESSAGE_TOKENS = 4
"""Tokens of a message in addition to its texts."""
LEAST = 60
"""The fewest tokens that a text is shortened to."""
LEAST_NOTE = 120
"""The fewest tokens of a note: with fewer it could not say what was removed and where it is."""
LEAST_CUT = 0.05
"""Share of the window that a removal has to free, since it invalidates the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanItem:
    """A message with the edits of earlier calls, or the note that replaces several messages."""

    message: ListMessage
    tokens: tuple[int, ...]
    """Tokens of each part."""
    before: str
    after: str
    """The place after it in the conversation, see `message_lists`; equal to `before` for a system message."""
    places: tuple[int, ...]
    """The indexes of its messages in the input list."""
    edit: MessageEdit | None = None
    texts: Mapping[int, str] = field(default_factory=dict[int, str])
    """New texts of the parts of the message at `places[0]`."""
    new_note: str | None = None
    """The note to write in place of its messages; None if it is in the list already."""

    @property
    def is_note(self) -> bool:
        """Whether it is our note in place of removed messages."""
        return self.edit is not None and self.edit.note is not None

    @property
    def has_user_words(self) -> bool:
        """Whether it has words of the user."""
        return self.message.is_said_by_user and not self.is_note

    @property
    def calls(self) -> int:
        """The number of model calls that it represents."""
        return self.edit.calls if self.edit and self.is_note else int(self.message.role == "assistant")

    @property
    def edited(self) -> Collection[int]:
        """The indexes of the parts that were replaced before."""
        return self.edit.texts if self.edit else ()

    @property
    def total(self) -> int:
        return sum(self.tokens) + MESSAGE_TOKENS


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replaces a part by a text of at most `limit` tokens. `middle` keeps the beginning and the end of the part."""

    item: int
    part: int
    how: Literal["result", "call", "middle"]
    tokens: int
    limit: int

    @property
    def saved(self) -> int:
        return self.tokens - self.limit


@dataclass(frozen=True, slots=True)
class Removal:
    """Replaces the items from `start` up to, but not including, `end` by a note of at most `limit` tokens."""

    start: int
    end: int
    limit: int


def make_plan(
    items: Sequence[PlanItem], rules: CompressionRules, *, overhead: int = 0, level: Level | None = None
) -> EditPlan:
    """Decide what to edit. `level` forces a level at any size.

    `overhead` is the number of tokens of the prompt that are not in the list, such as the definitions of tools.
    """
    plan = EditPlan(items, rules, overhead)
    plan.level = level or plan.level
    if plan.level == "mild":
        plan.replace_what_pays()
    elif plan.level != "none":
        plan.add(plan.old_parts())
        plan.cut_oldest(before=plan.kept_from, least=LEAST_CUT)
        if plan.level == "emergency":
            plan.force()
    return plan


def sent_before(items: Sequence[PlanItem]) -> int:
    """Return the index of the model's last message: the first item that no earlier call has sent.

    Returns 0 if there is no such message, or if a note has replaced it.
    """
    last = next((at for at in reversed(range(len(items))) if items[at].calls), None)
    return 0 if last is None or items[last].is_note else last


class EditPlan:
    """The edits to make. `total` is the tokens of the prompt after them; its initial value decides the `level`."""

    def __init__(self, items: Sequence[PlanItem], rules: CompressionRules, overhead: int) -> None:
        self.items = items
        self.rules = rules
        self.cuts: list[Removal] = []
        self.total = overhead + sum(item.total for item in items)
        self.level: Level = rules.level(self.total)
        self._units = units([item.message for item in items])
        self._replacements: dict[tuple[int, int], Replacement] = {}
        asked = [at for at, item in enumerate(items) if item.has_user_words]
        self._pinned = {
            *asked[:1],
            *asked[-1:],
            *(at for at, item in enumerate(items) if item.message.role == "system"),
        }
        self.kept_from = 0
        """Index of the first item of the newest calls."""
        calls = rules.keep_calls
        for unit in reversed(self._units):
            calls -= sum(items[at].calls for at in unit if not items[at].is_note)
            if calls <= 0:
                self.kept_from = unit.start
                break

    @property
    def replacements(self) -> list[Replacement]:
        """The replacements in messages that stay, in order."""
        gone = self._removed()
        return [self._replacements[place] for place in sorted(self._replacements) if place[0] not in gone]

    def _removed(self) -> set[int]:
        return {at for cut in self.cuts for at in range(cut.start, cut.end)}

    # --- mild ---------------------------------------------------------------------------------------

    def old_parts(self) -> Iterator[Replacement]:
        """Yield replacements of the long results and arguments before the newest calls, oldest first."""
        limits = {"result": self.rules.result_tokens, "call": self.rules.call_tokens}
        for at, item in enumerate(self.items[: self.kept_from]):
            for place, (part, tokens) in enumerate(zip(item.message.parts, item.tokens, strict=True)):
                if part.kind in ("result", "call") and place not in item.edited and tokens > 1.5 * limits[part.kind]:
                    yield Replacement(at, place, part.kind, tokens, limits[part.kind])

    def add(self, replacements: Iterable[Replacement]) -> None:
        for replacement in replacements:
            self.total -= replacement.saved
            self._replacements[replacement.item, replacement.part] = replacement

    def replace_what_pays(self) -> None:
        """Add the replacements of all old parts from one item on, chosen so that the batch gains most.

        Parts in use are kept. Nothing is added if no batch gains.
        """
        spared = results_in_use(self.items, self.rules.keep_calls)
        free = [replacement for replacement in self.old_parts() if (replacement.item, replacement.part) not in spared]
        saved = [0] * len(self.items)
        for replacement in free:
            saved[replacement.item] += replacement.saved
        sizes = [item.total - less for item, less in zip(self.items, saved, strict=True)]
        behind = [*accumulate(reversed(sizes))][::-1]  # from each item on, with all replacements
        unsent = sum(sizes[sent_before(self.items) :])
        calls = sum(item.calls for item in self.items)
        best, start = 0.0, None
        removed = 0
        for at in sorted({replacement.item for replacement in free}, reverse=True):
            removed += saved[at]
            gain = self.rules.gain(removed=removed, behind=max(0, behind[at] - unsent), calls=calls)
            if gain > best:
                best, start = gain, at
        if start is not None:
            self.add(replacement for replacement in free if replacement.item >= start)

    # --- aggressive ---------------------------------------------------------------------------------

    def cut_oldest(self, *, before: int, least: float = 0.0) -> None:
        """Remove the oldest units before item `before` until the target is reached; units with pinned items stay.

        Nothing is removed if that frees no more than the share `least` of the window.
        """
        goal = self.rules.target * self.rules.window
        most = int(self.rules.canvas * self.rules.window)
        runs: list[list[int]] = [[]]
        freed = 0
        for unit in self._units:
            if unit.stop > before or self.total - freed + min(most, freed // 2) <= goal:
                break
            if any(at in self._pinned for at in unit):
                runs.append([])
                continue
            runs[-1] += unit
            freed += sum(self._size(at) for at in unit)
        spans = [(run[0], run[-1] + 1) for run in runs if run]
        spans = [(start, end) for start, end in spans if end - start > 1 or not self.items[start].is_note]
        # Without room for a note on each span, as between many system messages, only the largest are removed.
        spans = sorted(sorted(spans, key=lambda span: -self._of(*span))[: max(1, most // LEAST_NOTE)])
        cuts = [Removal(start, end, min(most // len(spans), self._of(start, end) // 2)) for start, end in spans]
        cuts = [cut for cut in cuts if cut.limit >= LEAST_NOTE]
        freed = sum(self._of(cut.start, cut.end) - cut.limit for cut in cuts)
        if freed > least * self.rules.window:
            self.cuts = cuts
            self.total -= freed

    def _of(self, start: int, end: int) -> int:
        return sum(self._size(at) for at in range(start, end))

    def _size(self, at: int) -> int:
        """Return the tokens of an item with its replacements."""
        replacements = (self._replacements.get((at, place)) for place in range(len(self.items[at].tokens)))
        return self.items[at].total - sum(replacement.saved for replacement in replacements if replacement)

    # --- emergency ----------------------------------------------------------------------------------

    def force(self) -> None:
        """Remove the oldest units up to the newest, then shorten the largest texts, until the target is reached.

        The target may be missed: system messages, notes and short texts are not shortened.
        """
        goal = self.rules.target * self.rules.window
        newest = self._units[-1].start if self._units else 0
        if self.total > goal:
            self.total += sum(self._of(cut.start, cut.end) - cut.limit for cut in self.cuts)
            self.cuts = []
            self.cut_oldest(before=newest)
        while self.total > goal:
            largest = max(self._shortenable(goal), key=lambda replacement: replacement.saved, default=None)
            if largest is None or largest.saved <= LEAST:
                return
            self.add([largest])

    def _shortenable(self, goal: float) -> Iterable[Replacement]:
        """Yield a replacement for each remaining part that may be shortened, enough to reach the goal if possible."""
        gone = self._removed()
        for at, item in enumerate(self.items):
            if at in gone or item.is_note or item.message.role == "system":
                continue
            for place, (part, tokens) in enumerate(zip(item.message.parts, item.tokens, strict=True)):
                limit = max(LEAST, int(tokens - (self.total - goal)))
                if (
                    (at, place) in self._replacements
                    or part.kind == "fixed"
                    or (place in item.edited and tokens <= 4 * LEAST)
                ):
                    continue
                yield Replacement(at, place, "call" if part.kind == "call" else "middle", tokens, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionRules:
    """Settings of a compression; shares are of `window`. Raises InvalidInput for impossible values."""

    window: int
    """Tokens that the model can read, definitions and system prompt included."""
    mild: float = 0.5
    """Share from which long old results and arguments are replaced, if that pays."""
    aggressive: float = 0.85
    """Share from which long old parts are replaced in any case, and then the oldest messages are removed."""
    emergency: float = 0.95
    """Share from which newer messages are removed too, and then texts are shortened."""
    target: float = 0.6
    """Share to reach at the levels aggressive and emergency."""
    canvas: float = 0.2
    """The largest share for the notes that replace removed messages."""
    cached_price: float = 0.1
    """The relative price of a cached token; 1 without a cache."""
    further_calls: int | None = None
    """Expected further calls; None: as many as there were."""
    worth: float = 4.0
    """Least ratio of a batch's saving to its cost."""
    keep_calls: int = 8
    """How many of the newest model calls keep their messages unchanged, except in an emergency."""
    result_tokens: int = 60
    """The most tokens of the text that replaces an offloaded result."""
    call_tokens: int = 40
    """As `result_tokens`, for the arguments of a call."""

    def __post_init__(self) -> None:
        for name, least, most in _LIMITS:
            value = getattr(self, name)
            if name == "window" and not isinstance(value, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(f"window is {value!r}; it has to be a number of tokens.")
            if value is not None and not least <= value <= most:
                raise InvalidInput(f"{name} is {value}; it can be {least} to {most}.")
        if not self.mild <= self.aggressive <= self.emergency or self.target > self.aggressive:
            raise InvalidInput(
                f"mild ({self.mild}), aggressive ({self.aggressive}) and emergency ({self.emergency}) have to grow in "
                f"this order, and target ({self.target}) cannot be over aggressive."
            )

    def level(self, tokens: int) -> Level:
        """Return the level that a list of `tokens` requires."""
        share = tokens / self.window
        if share >= self.emergency:
            return "emergency"
        if share >= self.aggressive:
            return "aggressive"
        return "mild" if share >= self.mild else "none"

    def gain(self, *, removed: int, behind: int, calls: int) -> float:
        """Return the saving of a batch minus `worth` times its cost, in tokens at full price.

        `removed` tokens are saved in this call and each further one; `behind` tokens lose the cache once. The model has
        been called `calls` times so far.
        """
        further = calls if self.further_calls is None else self.further_calls
        saves = removed * self.cached_price * (1 + further)
        return saves - self.worth * (1 - self.cached_price) * behind


_LIMITS: tuple[tuple[str, float, float], ...] = (
    ("window", 500, 100_000_000),
    ("mild", 0, 1),
    ("aggressive", 0, 1),
    ("emergency", 0, 1),
    ("target", 0.05, 1),
    ("canvas", 0, 0.5),
    ("cached_price", 0, 1),
    ("further_calls", 0, 1_000_000),
    ("worth", 1, 1_000),
    ("keep_calls", 1, 10_000),
    ("result_tokens", 40, 10_000),
    ("call_tokens", 40, 10_000),
)
assert {name for name, _, _ in _LIMITS} == {field.name for field in fields(CompressionRules)}


def make_rules(window: int, values: Mapping[str, Any]) -> CompressionRules:
    """Return the rules with these values in place of defaults. Raises InvalidInput for an unknown name."""
    rule_names = [field.name for field in fields(CompressionRules) if field.name != "window"]
    for name, value in values.items():
        if name not in rule_names:
            raise InvalidInput(f"There is no rule {name!r}. Known rules: {', '.join(rule_names)}.")
        if not isinstance(value, int | float) and value is not None:
            raise InvalidInput(f"{name} is {value!r}; it has to be a number.")
    return CompressionRules(window=window, **values)


NAME = re.compile(r"[A-Za-z_][\w./-]{5,}")
RARE = 2
"""A name identifies a result if it occurs in at most this many parts of the older messages."""


def results_in_use(items: Sequence[PlanItem], calls: int) -> set[tuple[int, int]]:
    """Return the results, as (item, part), that share a rare name with the newest `calls` messages of the model."""
    newest: list[int] = [at for at, item in enumerate(items) if item.calls and not item.is_note][-calls:]
    if not newest:
        return set()
    spoken = {
        name
        for at in newest
        for part in items[at].message.parts
        if part.kind in ("text", "call")
        for name in NAME.findall(part.text)
    }
    names = {
        (at, place): spoken.intersection(NAME.findall(part.text))
        for at, item in enumerate(items[: newest[0]])
        for place, part in enumerate(item.message.parts)
    }
    counts = Counter(name for shared in names.values() for name in shared)
    return {
        (at, place)
        for (at, place), shared in names.items()
        if items[at].message.parts[place].kind == "result" and any(counts[name] <= RARE for name in shared)
    }
