"""The citations in a text: atoms and links in pages, tool results in turns and statements.

Pages cite atoms as `(a12, a57)` and link pages as `[[Name]]`. A citation supports the words before it in its line, back
to the previous citation; the final citation of a line also supports the rest of the line. So forgetting an atom removes
exactly the words that only this atom supports.

A scene's title and summary have no citations. They are kept if the remaining text has the same words, otherwise they
are derived from it. The slug stays, because it is the scene's address.

Texts name tool results as `r-9f2c1a7b3d4e`, with lines as `r-9f2c1a7b3d4e:120-134`, or by their node, `003-N4`.

Pure functions on text; they do not check that the atoms and results exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Scene
from mcp_memory.language.words import base_terms, fold, query_terms

# Models write `[a12]`, `(a12; a57)` and `（a12、a57）` where they were asked for `(a12, a57)`.
_PART = r"(?:a[0-9]{1,18}|\[\[[^\[\]\n]+\]\])"
_BETWEEN = r"(?:[,;&，；、]|[^\S\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])+"  # never across a line break of `splitlines`
_LISTED = rf"(?:[(（]|(?<!\[)\[(?!\[))[ ]*{_PART}(?:{_BETWEEN}{_PART})*[ ]*(?:[)）]|(?<!\])\](?![\](]))"
_GROUP = re.compile(rf"{_LISTED}(?:[ ]?{_LISTED})*")
_SPACED_GROUP = re.compile(rf"[ \t]*(?:{_GROUP.pattern})")
_ID = re.compile(r"(?<!\w)(?<!\[\[)a[0-9]{1,18}(?!\w)")
_LINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")
_STOP = re.compile(r"[.,;:!?…。，；：！？、\"'”’」』*_]*\s*")
_MARK = re.compile(r"\s*(?:(?:[-*+•>]|\d{1,9}[.)])\s+)*")
_HEADING = re.compile(r"\s{0,3}(?:(#{1,6})\s|\*\*[^*\n]{1,80}\*\*:?\s*$)")
_SENTENCE_END = re.compile(r"[.!?…。！？]")
_WORD = re.compile(r"\w")
_LOOKED_BACK = 1_000  # characters; longer than any list of ids, and a page of short lines takes linear time
_BELOW_ALL = 7  # the level of a bold line used as a heading


def cited_atoms(text: str) -> list[str]:
    """Return the ids of the atoms that a text cites, in order, without repetitions."""
    return list(dict.fromkeys(id for group in _GROUP.finditer(text) for id in _ids(group)))


def links(text: str) -> list[str]:
    """Return the names in `[[name]]` and `[[name|shown text]]`, in order, without repetitions."""
    return list(dict.fromkeys(name for match in _LINK.finditer(text) if (name := match[1].strip())))


def uncited_lines(text: str) -> list[str]:
    """Return the lines that cite no atom; headings, rules and blank lines need no citation."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if _WORD.search(line) and not _HEADING.match(line) and not cited_atoms(line)]


def uncited_tails(text: str) -> list[str]:
    """Return the sentences that follow the last citation of their line."""
    return [tail.strip() for line in text.splitlines() if (tail := _tail(line))]


def _tail(line: str) -> str:
    groups = list(_groups(line))
    if not groups:
        return ""
    stop = _stop(line, groups[-1].end())
    ends = (line[: groups[-1].start()].rstrip()[-1:] + line[groups[-1].end() : stop]).strip()
    return line[stop:] if _SENTENCE_END.search(ends) and _WORD.search(line, stop) else ""


def without_uncited(text: str) -> str:
    """Return the text without uncited lines and tails, and without headings that then have no text below."""
    bare = set(uncited_lines(text))
    lines = [line for line in text.splitlines() if line.strip() not in bare]
    return tidy([line[: len(line) - len(_tail(line))].rstrip() for line in lines])


def without_atoms(text: str, ids: Collection[str]) -> str:
    """Return the text without the words that only these atoms support, and without their ids elsewhere.

    Headings that then have no text below are removed.
    """
    gone = set(ids)
    if gone.isdisjoint(cited_atoms(text)):
        return text
    lines = [_line_without(line, gone) for line in text.splitlines()]
    return tidy([line for line in lines if line is not None]) + ("\n" if text.endswith("\n") else "")


def rename_atoms(text: str, names: Mapping[str, str]) -> str:
    """Return the text with the ids of cited atoms replaced; `names` maps old ids to new ids."""
    return _GROUP.sub(lambda group: _ID.sub(lambda id: names.get(id[0], id[0]), group[0]), text)


def mark_citations(text: str, marks: Mapping[str, str], *, says_mark: Callable[[str, str], bool] | None = None) -> str:
    """Return the text with a mark before each citation whose atoms all have marks, such as `…, from a tool (a12)`.

    `marks` maps atoms to marks; the mark of the first cited atom is written. It is not added if the words before the
    citation end with it, or if `says_mark(mark, words)` is true for the words of the sentence up to the citation.
    """
    end = 0

    def mark(group: re.Match[str]) -> str:
        nonlocal end
        before = text[max(end, text.rfind("\n", 0, group.start()) + 1) : group.start()]
        end = group.end()
        cited_marks = [marks.get(id) for id in _ids(group)]
        if not cited_marks or cited_marks[0] is None or None in cited_marks or before.endswith(cited_marks[0]):
            return group[0]
        if says_mark is not None and says_mark(cited_marks[0], _SENTENCE.split(text[: group.start()])[-1]):
            return group[0]
        return f", {cited_marks[0]} {group[0].lstrip()}"

    return _SPACED_GROUP.sub(mark, text)


_SENTENCE = re.compile(r"\n|(?<=[.!?])\s|(?<=[。！？])")


def without_citations(text: str) -> str:
    """Return the text without its citations; links become the text they show.

    The removal is repeated until no citation is left, because "((a1)a2)" and "([[x|a2]])" first become "(a2)".
    """
    while (
        left := _LINK.sub(_as_shown, _SPACED_GROUP.sub(lambda group: "" if _ids(group) else group[0], text))
    ) != text:
        text = left
    return text


def without_links(text: str, names: Collection[str]) -> str:
    """Return the text with the links to these names replaced by the text they show."""
    return _LINK.sub(lambda link: _as_shown(link) if link[1].strip() in names else link[0], text)


def _as_shown(link: re.Match[str]) -> str:
    return (link[2] or link[1]).strip()


def unwrap(text: str) -> str:
    """Return the text with wrapped lines joined, so that each line has its own citation."""
    lines: list[str] = []
    for line in text.splitlines():
        if lines and _goes_on(lines[-1], line):
            gap = "" if max(ord(lines[-1][-1]), ord(line.lstrip()[0])) > 0x2E7F else " "  # CJK has no spaces
            lines[-1] += gap + line.strip()
        else:
            lines.append(line.rstrip())
    return "\n".join(lines)


def _goes_on(before: str, line: str) -> bool:
    started = _WORD.search(before) and not _HEADING.match(before) and not re.match(r"\s*\|", line)
    if not started or not _WORD.search(line) or _HEADING.match(line) or _mark(line).strip():
        return False
    end = before[-_LOOKED_BACK:]
    groups = list(_groups(end))
    return not groups or _stop(end, groups[-1].end()) < len(end)


def _mark(line: str) -> str:
    """Return the list marker at the start of a line."""
    match = _MARK.match(line)
    return match[0] if match else ""


def _groups(text: str) -> Iterator[re.Match[str]]:
    return (group for group in _GROUP.finditer(text) if _ids(group))


def _ids(group: re.Match[str]) -> list[str]:
    matched = group[0]
    return _ID.findall(_LINK.sub("", matched) if "[[" in matched else matched)  # a page may be named from-a1


def _line_without(line: str, gone: set[str]) -> str | None:
    """Return the line without the words that only these atoms support; None if no words are left."""
    groups = list(_groups(line))
    if gone.isdisjoint(id for group in groups for id in _ids(group)):
        return line
    start = len(_mark(line))
    ends = [_stop(line, group.end()) for group in groups[:-1]] + [len(line)]
    kept: list[str] = []
    for group, begin, end in zip(groups, [start, *ends], ends, strict=False):
        left = [part for part in _parts(group) if part not in gone]
        if any(not part.startswith("[[") for part in left):
            kept.append(f"{line[begin : group.start()]}({', '.join(left)}){line[group.end() : end]}")
    return line[:start] + "".join(kept).rstrip(" ,;:，；、") if kept else None


def _parts(group: re.Match[str]) -> Sequence[str]:
    return re.findall(_PART, group[0])


def _stop(line: str, end: int) -> int:
    """Return the index after the punctuation that follows a citation, where the words that it supports end."""
    match = _STOP.match(line, end)
    return match.end() if match else end


def tidy(lines: Sequence[str]) -> str:
    """Return lines as a page, without headings that have no text below."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(_with_something_under(lines))).strip("\n")


def _with_something_under(lines: Sequence[str]) -> list[str]:
    """Return the lines without headings that have no text below."""
    kept: list[str] = []
    deepest = 0  # headings down to this level have text below them
    for line in reversed(lines):
        heading = _HEADING.match(line)
        level = (len(heading[1]) if heading[1] else _BELOW_ALL) if heading else 0
        if heading and level > deepest:
            continue
        if heading:
            deepest = level - 1
        elif line.strip():
            deepest = _BELOW_ALL
        kept.append(line)
    return kept[::-1]


_TITLE, _SUMMARY = 60, 160


def scene_without(scene: Scene, gone: Collection[str]) -> Scene:
    """Return the scene without the words that only these atoms support; the body is empty if no words are left."""
    if set(gone).isdisjoint(scene.atoms) and set(gone).isdisjoint(cited_atoms(scene.body)):
        return scene
    body = without_atoms(scene.body, gone)
    words = without_citations(body)
    entities = tuple(name for name in scene.entities if fold(name) in fold(words))
    return replace(
        scene,
        title=scene.title if _says(words, scene.title) else one_line(", ".join(entities) or gist(body), _TITLE),
        summary=scene.summary if _says(words, scene.summary) else gist(body),
        body=body,
        atoms=tuple(cited_atoms(body)),
        entities=entities,
    )


def gist(body: str) -> str:
    """Return the first cited line of a page, shortened and without citations; a fixed text if no line is cited."""
    lines = (
        without_citations(line).lstrip(" -*+•>")
        for line in body.splitlines()
        if cited_atoms(line) and not line.startswith("#")
    )
    return one_line(next(lines, "Nothing is left of it."), _SUMMARY)


def _says(text: str, words: str) -> bool:
    return set(query_terms(words)) <= set(base_terms(text))


# --- names of tool results --------------------------------------------------------------------------


_RESULT = re.compile(
    r"(?<![\w-])(?:(?P<ref>r-[0-9a-f]{12,64})(?::(?P<first>[1-9]\d{0,8})(?:[-–](?P<last>[1-9]\d{0,8}))?)?"
    r"|(?P<node>\d{3,6}-N\d{1,6}))(?![\w])",
    re.ASCII,
)
_MOST_RESULTS = 200


@dataclass(frozen=True, slots=True)
class NamedResult:
    """A ref or node that a text names, and the first and last of its lines, from 1, if given."""

    target: str
    lines: tuple[int, int] | None = None


def find_results(text: str) -> list[NamedResult]:
    """Return the results that a text names, in order, without repetitions; at most the first 200."""
    if "r-" not in text and "-N" not in text:  # true for nearly every turn; the pattern takes ten times as long
        return []
    results: dict[NamedResult, None] = {}
    for match in _RESULT.finditer(text):
        results[NamedResult(match["node"] or match["ref"], _lines_of(match))] = None
        if len(results) == _MOST_RESULTS:
            break
    return list(results)


def address(ref: str, lines: tuple[int, int] | None) -> str:
    """Return a ref with its lines in the form that `find_results` reads."""
    if lines is None:
        return ref
    return f"{ref}:{lines[0]}" if lines[0] == lines[1] else f"{ref}:{lines[0]}-{lines[1]}"


def _lines_of(match: re.Match[str]) -> tuple[int, int] | None:
    if match["first"] is None:
        return None
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return min(first, last), max(first, last)
