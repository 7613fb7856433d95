"""Finds the entity that a caller names, in other spellings too.

A name is compared in several ways, from the strictest to the loosest: exactly; without case, accents, separators and
the two spellings of an umlaut ("ines", "new_york"); as a part of a known name ("New York" for "New York City", 北京 for
北京市); and with more words at its end than the known name has. The first way that finds an entity decides. If it finds
several, or no way finds any, the error lists near names, so that a search for an unknown entity is never an empty list.

A name that is stored exactly costs one lookup; for other names the cost is linear in the number of stored names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import normalize, one_line
from mcp_memory.language.words import fold
from mcp_memory.longterm.names import USER, name_words
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import entity_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_SHOWN = 5
_COMPARED = 24  # names whose letters are compared one by one, after a count of shared pairs of letters
_HASHES = 1 << 16
_NEAR = 0.6  # the ratio of `SequenceMatcher` from which two words are near
_SEPARATORS = "_-.,/'&()\""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")
_FEWEST = 2  # characters of a part of a name in a script without spaces


class NameMatch(NamedTuple):
    """Main names of entities that a requested name may mean: the best matches, or else merely similar names.

    `is_spelling` is True if the best matches differ from the request only in case, accents or separators.
    """

    fits: list[str]
    near: list[str]
    is_spelling: bool


class EntityMatch(NamedTuple):
    """The main name of an entity.

    `note` is a remark for the reader if it differs by more than spelling from the requested name.
    """

    name: str
    note: str | None = None


def find_entity(store: Store, space: str, name: str) -> EntityMatch:
    """Return the entity that a name means. Raises NotFound, listing near names, if no entity or more than one fits."""
    asked = one_line(name.strip(), 60)
    if stored := store.read(space, entity_rows.names, [name]).get(name):
        return EntityMatch(stored[0])
    if fold(name.strip()) == USER:
        return EntityMatch(USER)
    match = match_name(name, store.read(space, entity_rows.all_names))
    if not match.is_spelling and fold(name.strip()) in name_words("user"):
        match = NameMatch([USER], [], is_spelling=False)
    if len(match.fits) == 1:
        main_name = match.fits[0]
        loosely = f"No entity is called exactly {asked!r}: this is about {one_line(main_name, 60)!r}."
        return EntityMatch(main_name, None if match.is_spelling else loosely)
    if match.fits:
        listed = _enumerate_names(match.fits)
        raise NotFound(f"{len(match.fits)} entities fit {asked!r}: {listed}. Name one of them in full.")
    if match.near:
        raise NotFound(f"No entity {asked!r}. Near: {_enumerate_names(match.near)}.")
    raise NotFound(f"No entity {asked!r}, nor any with a similar name. Leave `entity` out and search for the words.")


def _enumerate_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(one_line(name, 60) for name in names[:_SHOWN]) + more


def match_name(name: str, main_names: Mapping[str, str]) -> NameMatch:
    """Compare a name with all stored names. `main_names` maps each stored name to the main name of its entity."""
    plain, lines = _fold_all([" ".join(name.split())]), _fold_all(main_names)
    if not plain or not main_names:
        return NameMatch([], [], is_spelling=False)
    spelled_out = (_fold_all(_spelled_out(names)) for names in ([" ".join(name.split())], main_names))
    same = [*_same_letters(plain, lines)] or [*_same_letters(*spelled_out)]
    places = same or [*_find_containing(plain, lines)] or [*_find_beginning(plain, lines)]
    of_place = list(main_names.values())
    fits = list(dict.fromkeys(of_place[place] for place in places))
    near = [] if fits else _near(plain, lines, of_place)
    return NameMatch(fits, near, is_spelling=bool(same))


def _fold_all(names: Iterable[str]) -> str:
    """Return the folded names, one on each line, with one space between words.

    ASCII names are lower-cased as one text, which takes a tenth of the time.
    """
    lines = (name if name.isascii() else fold(name) for name in names)
    text = "\n".join(lines).lower()
    for separator in _SEPARATORS:
        text = text.replace(separator, " ")
    while "  " in text:
        text = text.replace("  ", " ")
    return text.replace("\n ", "\n").replace(" \n", "\n").strip(" ")


_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ø": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ø": "Oe", "Ü": "Ue"})


def _spelled_out(names: Iterable[str]) -> Iterator[str]:
    """Yield names with two letters for an umlaut, such as "Zuerich" for "Zürich"."""
    for name in names:
        yield name if name.isascii() else normalize("NFC", name).translate(_UMLAUTS)


def _same_letters(name: str, lines: str) -> Iterator[int]:
    return _equal(name.replace(" ", ""), lines.replace(" ", ""))


def _equal(name: str, lines: str) -> Iterator[int]:
    """Yield the places of the lines that are equal to a text."""
    return _places(name, lines, before="\n", after="\n")


def _find_containing(part: str, lines: str) -> Iterator[int]:
    """Yield the places of the names that contain a text as whole words; without spaces, at their start or end."""
    yield from _places(part, lines, before=" \n", after=" \n")
    if _UNSPACED.fullmatch(part) and len(part) >= _FEWEST:
        yield from _places(part, lines, before=" \n")
        yield from _places(part, lines, after=" \n")


def _find_beginning(name: str, lines: str) -> Sequence[int]:
    """Return the places of the longest known name that begins the requested name: "New York" for "New York City"."""
    ends = range(len(name) - 1, 0, -1)
    for end in ends:
        is_whole = name[end] == " " or (end >= _FEWEST and _UNSPACED.fullmatch(name[: end + 1]))
        if is_whole and name[:end] != USER and (places := [*_equal(name[:end], lines)]):
            return places
    return ()


def _places(part: str, lines: str, *, before: str = "", after: str = "") -> Iterator[int]:
    """Yield the numbers of the lines that contain `part`.

    If `before` or `after` is not empty, one of its characters or an end of the text must be on that side of `part`.
    """
    last, place, at = 0, 0, lines.find(part)
    while at >= 0:
        end = at + len(part)
        if (not before or lines[at - 1 : at] in before) and (not after or lines[end : end + 1] in after):
            place += lines.count("\n", last, at)
            last = at
            yield place
        at = lines.find(part, at + 1)


# --- near names -------------------------------------------------------------------------------------


def _near(name: str, lines_text: str, main_names: Sequence[str]) -> list[str]:
    """Return the main names of at most five entities that have a name similar to `name`, the most similar first.

    `main_names` has, for each line, the main name of the entity with that name.
    """
    best, lines = defaultdict[str, float](float), lines_text.split("\n")
    for place in _find_sharing_letters(name, lines_text):
        best[main_names[place]] = max(best[main_names[place]], _similarity(name, lines[place]))
    near = [main_name for main_name, similarity in best.items() if similarity >= _NEAR and main_name != USER]
    return sorted(near, key=lambda main_name: -best[main_name])[:_SHOWN]


def _similarity(name: str, other: str) -> float:
    """Return the similarity of two names, at most 1: as a whole without spaces or by words, whichever is higher.

    By words, it is the mean similarity of each word of the shorter name to its best match, less 0.01 for each
    additional word of the longer name.
    """
    shorter, longer = sorted((name.split(" "), other.split(" ")), key=len)
    ratios = (max(SequenceMatcher(None, a, b, autojunk=False).ratio() for b in longer) for a in shorter)
    whole = SequenceMatcher(None, name.replace(" ", ""), other.replace(" ", ""), autojunk=False).ratio()
    return max(whole, sum(ratios) / len(shorter) - 0.01 * (len(longer) - len(shorter)))


def _find_sharing_letters(name: str, lines: str) -> Iterator[int]:
    """Yield the places of the lines with the largest share of pairs of letters in common with a name."""
    import numpy as np

    letters = _codes(f"\n{lines}\n")
    breaks = np.flatnonzero(letters == ord("\n"))
    letters[breaks] = ord(" ")  # pair the first letter of every name with a space too
    asked = np.zeros(_HASHES, np.bool_)
    asked[_pairs(_codes(f" {name} "))] = True
    counts = np.add.reduceat(asked[_pairs(letters)], breaks[:-1], dtype=np.int32)
    # Further words of a stored name do not lower its share.
    share = counts / np.minimum(np.diff(breaks), len(name) + 1)
    for place in np.argsort(-share, kind="stable")[:_COMPARED].tolist():
        if counts[place]:
            yield place


def _codes(text: str) -> NDArray[np.uint32]:
    import numpy as np

    return np.frombuffer(text.encode("utf-32-le"), np.uint32).copy()


def _pairs(letters: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return a hash of each letter with the next letter."""
    import numpy as np

    return (letters[:-1] * np.uint32(31) + letters[1:]) & np.uint32(_HASHES - 1)
