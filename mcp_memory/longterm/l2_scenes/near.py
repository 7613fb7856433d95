"""Which pages a round shows in full: those that are due, and those that its new atoms belong to most likely.

A page costs as much to show as ten statements, and most have nothing to do with what is new. The others stand in the
question by their summaries: what belongs to one all the same is added to it unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mcp_memory.core.types import Atom, Scene
from mcp_memory.language.words import fold
from mcp_memory.longterm.desk import Desk
from mcp_memory.longterm.l2_scenes.page import USER
from mcp_memory.store.protocol import Filters

__all__ = ["to_show"]

_CHARS = 12_000
_CHARS_TO_MERGE = 24_000  # what is to be merged has to be seen
_CHARS_AT_ONCE = 3_000  # so little is shown whatever it tells
_COLDEST = 3  # to be merged where there is no room for a new page
_ALIKE = 12  # other new atoms are among them


def to_show(
    desk: Desk, scenes: Mapping[str, Scene], due: Sequence[str], new: Sequence[Atom], *, smaller: int
) -> list[str]:
    """Return the slugs: what is due first, then the nearest; where two have to become one, what may be merged too.

    `scenes` has all that stand, the hottest first.
    """
    most = desk.settings.max_scenes
    too_many, full = len(scenes) >= most, len(scenes) == most - 1
    room = (_CHARS_TO_MERGE if too_many else _CHARS) >> smaller
    if sum(map(_length, scenes.values())) <= min(room, _CHARS_AT_ONCE):
        return list(scenes)
    near = _near(desk, scenes, new)
    to_merge = list(scenes) if too_many else list(scenes)[-_COLDEST:] if full else []
    wanted = [*due, *(slug for slug, _ in near.most_common()), *to_merge]
    return list(_within(scenes, dict.fromkeys(wanted), room))


def _within(scenes: Mapping[str, Scene], slugs: Iterable[str], room: int) -> Iterator[str]:
    """Yield the slugs of those that there is room for, at least the first."""
    for count, slug in enumerate(slugs):
        room -= _length(scenes[slug])
        if room >= 0 or not count:
            yield slug


def _length(scene: Scene) -> int:
    return len(scene.body) + len(scene.summary)


def _near(desk: Desk, scenes: Mapping[str, Scene], new: Sequence[Atom]) -> Counter[str]:
    """Return the page that each new atom belongs to most likely, with all that speaks for each."""
    about = {slug: {fold(name) for name in scene.entities} for slug, scene in scenes.items()}
    spread = Counter(name for names in about.values() for name in names)
    tellers: dict[str, list[str]] = {}
    for slug, scene in scenes.items():
        for id in scene.atoms:
            tellers.setdefault(id, []).append(slug)
    near: Counter[str] = Counter()
    for atom in new:
        points = _alike(desk, tellers, atom)
        named = {fold(name) for name in atom.entities} - {USER}
        for slug, names in about.items():
            points[slug] += sum(10 // spread[name] for name in names & named)
        near.update({slug: many for slug, many in points.most_common(1) if many})
    return near


def _alike(desk: Desk, tellers: Mapping[str, Sequence[str]], atom: Atom) -> Counter[str]:
    """Return the pages that tell atoms like this one; the most alike count for most."""
    alike = desk.search(
        desk.space,
        "atom",
        atom.text,
        embed=desk.of_query,
        filters=Filters(unheld=True),
        limit=_ALIKE,
    )
    points: Counter[str] = Counter()
    for rank, id in enumerate(id for hit in alike if (id := hit.id) in tellers):
        for slug in tellers[id]:
            points[slug] += 10 // (rank + 1)
    return points
