"""Whether a page that somebody wrote can be kept: its form, and whether what it names as evidence is there.

What is put around a page by habit (a fence, another title, sections that are made mechanically) is taken off. What
is wrong with the page itself is InvalidInput, worded for whoever wrote it. Pure, but for the scenes it is given.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line, well_formed
from mcp_memory.core.types import Scene
from mcp_memory.longterm.l2_scenes.page import called
from mcp_memory.longterm.l3_persona.page import MAX_CHARS, OURS, lines_of, sections, without_sections
from mcp_memory.models.llm import without_fence
from mcp_memory.store.citations import cited, links, uncovered, unwrapped
from mcp_memory.suspicion import flags

__all__ = ["check_evidence", "check_form", "cleaned", "unfounded", "without_orders"]


def cleaned(text: str) -> tuple[str, list[str]]:
    """Return the page under the one title that all have, and the names of the sections that were left out."""
    given = unwrapped(without_fence(text))
    lines = without_sections(given, OURS).strip().splitlines()
    if lines and lines[0].startswith("# "):
        del lines[0]
    page = "# Persona\n\n" + "\n".join(lines).strip() + "\n"
    return page, [name for name in OURS if name in sections(given)]


def without_orders(text: str) -> tuple[str, list[str]]:
    """Return the page without lines that read like an order to a model, and these: no page repeats what was planted."""
    ordered = [line for line in text.splitlines() if flags(line, "assistant")]
    kept = [line for line in text.splitlines() if line not in ordered]
    return ("\n".join(kept) + "\n" if ordered else text), ordered


def unfounded(text: str) -> list[str]:
    """Return the lines that name neither an atom nor a scene."""
    return [line for line in uncovered(text) if not links(line)]


def check_form(text: str) -> None:
    """Raise InvalidInput for a page that says nothing, is too long, or mostly names no evidence."""
    lines, bare = lines_of(text), unfounded(text)
    if not lines:
        raise InvalidInput("The page says nothing. Write at least who the person is.")
    if not well_formed(text):
        raise InvalidInput("The page has a lone surrogate, which is not text. Write the character itself.")
    if len(text) > MAX_CHARS:
        raise InvalidInput(
            f"The page has {len(text):,} characters of at most {MAX_CHARS:,}: cut {len(text) - MAX_CHARS:,} or more. "
            "Leave out what somebody who meets the person anew needs least, whole lines rather than words."
        )
    if 2 * len(bare) > len(lines):
        raise InvalidInput(
            f"{len(bare)} of {len(lines)} lines name no evidence. Put behind each statement what it rests on, such as "
            f"(a12) or ([[slug]]), and leave out what rests on nothing, such as: {one_line(bare[0], 80)}"
        )


def check_evidence(text: str, citable: Collection[str], scenes: Sequence[Scene]) -> None:
    """Raise InvalidInput for a page that names other atoms than these, or other scenes."""
    unknown = [id for id in cited(text) if id not in citable]
    if unknown:
        raise InvalidInput(
            f"The page names {', '.join(unknown[:10])}, which was not shown or is forgotten by now. Name only ids "
            "that stand in the question, and leave out what rested on others."
        )
    by_slug = {scene.slug: scene for scene in scenes}
    missing = [name for name in links(text) if called(by_slug, name) is None]
    if missing:
        known = ", ".join(by_slug) or "none"
        raise InvalidInput(f"There is no scene [[{one_line(missing[0], 60)}]] to name. Scenes: {known}.")
