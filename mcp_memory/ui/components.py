"""Parts that pages share: headings, lists, tables, times, quotes with marked words, forms; and `View` and `Page`.

A page is a function from a `View` to a `Page`, the same for the browser and for the MCP App; `pages` lists them by
address. All classes of the style sheet are used here or in `pictures`; pages only combine components.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.rights import Right, includes
from mcp_memory.core.text import name_hidden, one_line, plural, remove_hidden, split_hidden
from mcp_memory.core.types import ATTRIBUTION, Atom, Fact, Kind, MentionedEntity, Role, Source, StatementKind, Turn
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.longterm.names import USER
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.times import day_of as day_of
from mcp_memory.ui.times import day_text as day_text
from mcp_memory.ui.times import moment as moment
from mcp_memory.ui.times import time_span as time_span
from mcp_memory.ui.times import weekday_text as weekday_text

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
    from mcp_memory.ui.exports import Exports


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A request for a page: the memory, the parts of the address and its query, and the reader's rights.

    `form_token` is empty if nothing can be changed, as in the App: pages then have no forms that change anything.
    If `is_owner`, the reader owns this machine, so pages may name other spaces, tokens and folders. `sign_ins` is the
    number of browsers of this machine that are signed in, 0 if they are not counted.
    """

    memory: Memory
    parts: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    right: Right = "admin"
    form_token: str = ""
    is_owner: bool = False
    sign_ins: int = 0
    exports: Exports | None = None
    """The exports that can be started and downloaded; None if none can be."""

    def may(self, right: Right) -> bool:
        """Return whether the reader may make changes that need this right."""
        return bool(self.form_token) and includes(self.right, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A title and the content below it. `here` is the page's entry in the navigation."""

    title: str
    body: tuple[Element | str, ...]
    here: str = ""


ROLE_NAMES: Mapping[Role, str] = {
    "user": "you",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
    "note": "told to the memory",
}
KIND_NAMES: Mapping[Kind, str] = {"persona": "about the person", "episodic": "event", "instruction": "rule"}
KIND_EXPLANATIONS: Mapping[StatementKind, str] = {
    "persona": "about the person: what lasts",
    "episodic": "event: what happened",
    "instruction": "rule: how agents should work",
    "promise": "promise: what to tell you when something comes up",
}
_PROGRAMS: Mapping[str, str] = {
    "chatgpt": "ChatGPT",
    "claude-ai": "Claude Desktop",
    "claude-code": "Claude Code",
    "codex": "Codex",
    "cursor": "Cursor",
    "gemini": "Gemini",
    "gemini-cli": "Gemini CLI",
    "opencode": "OpenCode",
    "vscode": "VS Code",
    "windsurf": "Windsurf",
    "zed": "Zed",
}
TURNS_AROUND = 3
"""Turns that are shown before and after a turn."""
_MAX_HIDDEN = 300  # characters that name a run of hidden characters
TYPED_HERE = "typed-on-the-pages"
"""The session of the statements that a person typed on the pages."""
ENDED = "no longer true"
"""Mark of a statement that has ended."""


def no_item(id: str) -> NotFound:
    """Return the error for an id that nothing has."""
    return NotFound(f"Nothing has the number {id} in this memory.")


# --- addresses ----------------------------------------------------------------------------------
def address(path: str, /, **query: object) -> str:
    """Return an address of this interface. The caller escapes each part of `path` with `part`; values are escaped here.

    `path` may end in a fragment (`#…`).
    """
    parameters = {name: str(value) for name, value in query.items() if value not in (None, "")}
    path, mark, place = path.partition("#")
    return f"{path}?{urlencode(parameters, errors='replace')}{mark}{place}" if parameters else f"{path}{mark}{place}"


def part(text: str) -> str:
    """Return a text as one part of a path."""
    return quote(text, safe="", errors="replace")


def start_of(query: Mapping[str, str]) -> int:
    """Return the place in a list at which a page begins, `start` of its query. Raises InvalidInput for no number."""
    start = query.get("start", "0")
    if not (start.isascii() and start.isdigit() and len(start) < 10):
        raise InvalidInput("The place to start at has to be a number. Go back and follow a link.")
    return int(start)


def link(path: str, *children: Any, class_: str | None = None, **query: object) -> Element:
    return el("a", *children, href=address(path, **query), class_=class_)


# --- texts of the memory ----------------------------------------------------------------------------
def memory_text(text: str, *, class_: str | None = None, tag: str = "span") -> Element:
    """Return a text of the memory without hidden characters, and with its own direction."""
    return el(tag, fade_dates(remove_hidden(text)), dir="auto", class_=class_)


def fade_dates(text: str) -> list[Node]:
    """Return a text with the dates that the memory added to it, as in `tomorrow [1 December 2026]`, small."""
    nodes, place = list[Node](), 0
    for match in ADDITION.finditer(text):
        nodes += [text[place : match.start()], " ", el("small", match[0].strip())]
        place = match.end()
    return [*nodes, text[place:]]


def statement_text(text: str) -> Element:
    """Return a statement whose date is beside it, so the dates that the memory added to its words are left out."""
    return memory_text(ADDITION.sub("", text))


def mark_spans(
    text: str,
    spans: Sequence[tuple[int, int]],
    *,
    source: Sequence[tuple[int, int]] = (),
    paths: Mapping[tuple[int, int], str] | None = None,
    around: int | None = None,
) -> list[Node]:
    """Return a text with these spans marked, which are places of searched words.

    Spans of `source`, from which statements were learned, are marked in a quieter way; those of `paths` are links.
    `around` limits the characters before the first span and after the last.
    """

    def clipped(several: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
        return {span: (max(0, span[0]), min(len(text), span[1])) for span in several if span[0] < span[1]}

    paths = paths or {}
    linked = {span: paths[given] for given, span in clipped(paths).items()}
    looks = {"": [*clipped(spans).values()], "source": [*clipped(source).values()]}
    ends = sorted(end for span in (*looks[""], *looks["source"], *linked) for end in span)
    first = 0 if around is None or not ends else max(0, ends[0] - around)
    last = len(text) if around is None or not ends else min(len(text), ends[-1] + around)

    def look_of(piece: tuple[int, int]) -> tuple[str | None, str | None]:
        look = next((look for look in looks if any(start <= piece[0] < end for start, end in looks[look])), None)
        return look, next((path for (start, end), path in linked.items() if start <= piece[0] < end), None)

    nodes: list[Node] = ["…"] if first else []
    pieces = pairwise(sorted({first, *(end for end in ends if first < end < last), last}))
    for (look, path), together in groupby(pieces, look_of):
        several = list(together)
        shown = remove_hidden(text[several[0][0] : several[-1][1]])
        words = shown if look is None else el("mark", shown, class_=look or None)
        nodes.append(words if path is None else link(path, words))
    return [*nodes, "…"] if last < len(text) else nodes


def quote_turn(
    turn: Turn,
    spans: Sequence[tuple[int, int]],
    *,
    around: int | None = 200,
    of: str | None = None,
    title: str | None = None,
) -> Element:
    """Return the words of a turn as evidence, with the quoted spans marked, the speaker, the time and the conversation.

    `of` is the statement that is based on them; the page of the turn, to which the time leads, then marks the same
    words. `title` is the title of the conversation.
    """
    to_turn = link(f"/{turn.id}", moment(turn.said_at), **({"for": of} if of else {}))
    where = conversation_link(turn, title) if title else None
    return el(
        "figure",
        el("blockquote", mark_spans(turn.content, (), source=spans, around=around), dir="auto"),
        el("figcaption", el("span", speaker(turn)), to_turn, where, class_="line"),
        class_="quote",
    )


def conversation_link(turn: Turn, title: str, *, q: str | None = None) -> Element:
    """Return a link to the turn in its conversation; of a long one, the page begins a little before the turn.

    The page marks the words of `q`.
    """
    start = max(0, turn.position - TURNS_AROUND)
    return link(f"/session/{part(turn.session)}#{turn.id}", memory_text(title), start=start or None, q=q)


def relation_words(relation: str) -> str:
    """Return a relation as people read it: `takes for blood pressure` for `takes_for_blood_pressure`."""
    return remove_hidden(relation).replace("_", " ")


def fact_words(fact: Fact) -> Element:
    """Return a fact in a line: who or what, the relation, the value."""
    entity = "you" if fact.entity == USER else fact.entity
    return memory_text(f"{entity} · {relation_words(fact.relation)} · {fact.value}")


def reveal(text: str) -> list[Node]:
    """Return a text of the memory with its hidden characters named in their places, as in `[U+200B]`."""
    return [
        el("code", f"[{one_line(name_hidden(piece), _MAX_HIDDEN)}]", class_="masked") if is_hidden else piece
        for piece, is_hidden in split_hidden(text)
    ]


def speaker(turn: Turn) -> Node:
    """Return the speaker of a turn: the name, and the role unless that is the user; the role alone without a name."""
    role = ROLE_NAMES[turn.role]
    if not turn.name:
        return memory_text(role)
    return memory_text(turn.name if turn.role == "user" else f"{turn.name} ({role})")


def program_name(client: str) -> str:
    """Return the name that people know a program by; of an unknown program, the name it gives itself."""
    return _PROGRAMS.get(client.lower().removesuffix("-vscode"), client)


def client_named(program: str) -> str:
    """Return the name that a program gives itself, from the name that people know it by; an unknown name as it is."""
    return next((client for client, name in _PROGRAMS.items() if name.lower() == program.lower()), program)


def name_of_source(source: Source) -> Node | None:
    """Return a badge that names the source of a statement; None if the user stated it."""
    return badge(ATTRIBUTION[source], "source") if ATTRIBUTION[source] else None


# --- boxes ------------------------------------------------------------------------------------------
def body(*children: Any) -> tuple[Node, ...]:
    """Return the content of a page below its title; parts that are None are left out."""
    return el("main", *children).children


def section(title: str | None, *children: Any, id: str | None = None, beside: Any = None) -> Element:
    """Return a part of a page under a second-level heading, with `beside` on the line of the heading."""
    head = el("div", el("h2", title), beside, class_="head") if title else None
    return el("section", head, *children, id=id)


def card(*children: Any, tag: str = "article", class_: str = "") -> Element:
    return el(tag, *children, class_=f"card {class_}".strip())


def columns(*children: Any) -> Element:
    """Return boxes in columns, or below each other on narrow screens."""
    return el("div", *children, class_="columns")


def wide_columns(main: Iterable[Any], side: Iterable[Any]) -> Element:
    """Return a wide column and a narrower one beside it, or below it where there is no room; one if one is empty."""
    full = [box for box in (el("div", main), el("div", side)) if box.children]
    return el("div", full, class_="columns wide-first" if len(full) == 2 else None)


def dated_row(said: Any, *meta: Any, when: Any) -> Element:
    """Return a row of a list: what was said, a line about it if `meta` is not empty, and `when` at the right."""
    parts = [part for part in meta if part is not None]
    return el("div", el("div", said), when, line(*parts) if parts else None, class_="dated")


def line(*children: Any) -> Element:
    """Return elements in a line that wraps."""
    return el("div", *children, class_="line")


def badge(text: str, kind: str = "") -> Element:
    """Return a small label. Kinds: ok, warn, bad, source, kind."""
    return el("span", text, class_=f"badge {kind}".strip())


def review_badge() -> Element:
    """Return the label of a quarantined row."""
    return badge("waits for review", "warn")


def note(*children: Any, kind: str = "", tag: str = "p") -> Element:
    """Return a notice for the reader. Kinds: warn, bad, ok."""
    return el(tag, *children, class_=f"note {kind}".strip(), role="status" if kind else None)


def empty(text: str) -> Element:
    return el("p", text, class_="empty")


def count(number: float, *, digits: int = 0) -> str:
    return f"{number:,.{digits}f}"


def rows(children: Iterable[Any], *, ordered: bool = False) -> Element:
    """Return a list of rows. The keys `j` and `k` move through them; Enter opens the first link of the focused row."""
    return el("ol" if ordered else "ul", (el("li", child, tabindex="-1") for child in children), class_="rows",
              data_rows=True)  # fmt: skip


def table(caption: str, head: Sequence[str], lines: Iterable[Sequence[Any]], *, numbers: Sequence[int] = ()) -> Element:
    """Return a table that scrolls sideways, apart from the page, if too wide; columns in `numbers` align right."""

    def cell(tag: str, place: int, child: Any) -> Element:
        return el(tag, child, class_="number" if place in numbers else None, scope="col" if tag == "th" else None)

    return el(
        "div",
        el(
            "table",
            el("caption", caption),
            el("thead", el("tr", (cell("th", place, name) for place, name in enumerate(head)))),
            el("tbody", (el("tr", (cell("td", place, child) for place, child in enumerate(line))) for line in lines)),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def labelled_values(pairs: Iterable[tuple[str, Any]]) -> Element:
    """Return labels with their values; pairs whose value is None are left out."""
    return el("dl", ([el("dt", name), el("dd", value)] for name, value in pairs if value is not None), class_="facts")


def pager(path: str, cursor: str | None, text: str, **query: object) -> Element | None:
    """Return the link to the next page, None on the last page."""
    return (
        None if cursor is None else el("p", el("a", text, href=address(path, cursor=cursor, **query)), class_="pager")
    )


def chosen_of(label: str, links: Iterable[tuple[Any, str, bool]]) -> Element:
    """Return links of which one is chosen, such as orders of a list; each is its content, its address, and if it is."""
    entries = (el("a", text, href=path, aria_current="true" if chosen else None) for text, path, chosen in links)
    return el("nav", line(entries), class_="chips", aria_label=label)


def untitled(at: datetime, client: str | None = None) -> str:
    """Return what a conversation without a title is called, by its day and its program."""
    return f"{program_name(client) if client else 'A conversation'}, {day_text(day_of(at))}"


def session_link(session: str, title: str) -> Element:
    """Return the title of a conversation as a link to its page."""
    return link(f"/session/{part(session)}", memory_text(title))


def entity_link(name: str) -> Element:
    """Return the name of a person, place or thing as a link to its page."""
    return link(f"/entity/{part(name)}", memory_text(shown_name(name)), class_="entity")


def shown_name(name: str) -> str:
    """Return the name of an entity as people read it: the user is `you`."""
    return "you" if name == USER else name


# --- rows of the memory -----------------------------------------------------------------------------
def statement_row(atom: Atom) -> Element:
    """Return a statement with its dates beside it, and below it what is special about it and what it is about."""
    ended = [" – ", moment(atom.valid_to, day=True)] if atom.valid_to else None
    since = "never true" if atom.valid_to == atom.valid_from else [moment(atom.valid_from, day=True), ended]
    meta = [
        name_of_source(atom.source),
        review_badge() if atom.held else None,
        badge("check its words", "warn") if atom.doubts else None,
        *entity_links(atom.entities),
    ]
    rule = rule_badge(atom)
    said = el("p", link(f"/{atom.id}", statement_text(atom.text)), [" ", rule] if rule else None, class_="said")
    row = dated_row(said, *meta, when=el("span", since, class_="when"))
    return el("div", row, class_="statement ended" if ended else "statement")


def rule_badge(atom: Atom) -> Element | None:
    """Return the label of a promise or a rule; None for other statements, which need none."""
    if atom.kind != "instruction":
        return None
    return badge("promise" if atom.label == "promise" else "rule", "kind")


def entity_links(entities: Iterable[str]) -> Iterator[Element]:
    """Yield a link to each entity, except to the user."""
    return (entity_link(name) for name in entities if name != USER)


def turn_row(
    turn: Turn,
    spans: Sequence[tuple[int, int]] = (),
    *,
    source: Sequence[tuple[int, int]] = (),
    paths: Mapping[tuple[int, int], str] | None = None,
) -> Element:
    """Return a turn, verbatim, with spans marked or linked as in `mark_spans`."""
    return el(
        "div",
        line(speaker(turn), link(f"/{turn.id}", moment(turn.said_at))),
        el("div", mark_spans(turn.content, spans, source=source, paths=paths), dir="auto", class_="verbatim"),
        class_=f"turn by-{turn.role}",
    )


def entity_names(entities: Iterable[MentionedEntity]) -> Element:
    """Return the names of entities side by side, each with the number of statements that mention it."""

    def named(entity: MentionedEntity) -> Element:
        return el("li", entity_link(entity.name), " ", el("small", count(entity.statements)))

    return el("ul", map(named, entities), class_="names")


def forgotten_line(many: int) -> Element | None:
    """Return the number of forgotten items with a link to them; None if there are none."""
    if not many:
        return None
    them = "it" if many == 1 else "them"
    way = el("a", f"look at {them}, or bring {them} back", href="/home#forgotten")
    return el("p", f"{plural(many, 'thing was', 'things were')} forgotten: ", way)


# --- forms ------------------------------------------------------------------------------------------
def input_field(label: str, name: str, value: str, *, hint: str | None = None, kind: str = "text") -> Element:
    """Return a labelled field; `hint` is an example of a value."""
    return el("label", label, " ", el("input", type=kind, name=name, value=value, placeholder=hint, dir="auto"),
              class_="field")  # fmt: skip


def date_field(label: str, name: str, value: str) -> Element:
    """Return a labelled field for a day; it is empty if the value is no day such as `2026-11-30`."""
    with suppress(ValueError):
        return el("label", label, el("input", type="date", name=name, value=date.fromisoformat(value).isoformat()))
    return el("label", label, el("input", type="date", name=name))


def search_form(path: str, label: str, value: str, *more: Any, button: Element | None = None) -> Element:
    """Return a form that loads `path` with the text in its field as `q`; `label` names the field and the form."""
    return el(
        "form",
        el("input", type="search", name="q", value=value, aria_label=label, placeholder=label, dir="auto"),
        button or el("button", "Find"),
        *more,
        method="get",
        action=path,
        role="search",
        aria_label=label,
    )


def choice(label: str, name: str, options: Iterable[tuple[str, str]], chosen: str) -> Element:
    """Return a labelled select element; `options` are values with their labels."""
    lines = (el("option", words, value=value, selected=value == chosen) for value, words in options)
    return el("label", label, " ", el("select", lines, name=name), class_="field")


def tick(label: str, name: str, *, checked: bool) -> Element:
    """Return a labelled checkbox with the value 1."""
    return el("label", el("input", type="checkbox", name=name, value="1", checked=checked), " ", label)


def hidden(values: Mapping[str, object]) -> list[Element]:
    return [el("input", type="hidden", name=name, value=str(value)) for name, value in values.items()]


def form(view: View, name: str, *children: Any, needs: Right = "admin", class_: str | None = None,
         id_: str | None = None, **values: object) -> Element | None:  # fmt: skip
    """Return a form that runs the action `name` of `actions` with hidden `values`; None if the reader lacks the right.

    `id_` is for fields outside of the form, which name it as their `form`.
    """
    if not view.may(needs):
        return None
    fields = hidden({"form_token": view.form_token, **values})
    return el("form", fields, *children, method="post", action=f"/do/{name}", class_=class_, id=id_)


def action(view: View, name: str, text: str, *, needs: Right = "admin", kind: str = "", key: str | None = None,
           **values: object) -> Element | None:  # fmt: skip
    """Return a button that runs an action at once; None if the reader lacks the right.

    `kind` is its style (danger or main), `key` its keyboard shortcut.
    """
    button = el("button", text, class_=kind or None, data_key=key)
    return form(view, name, button, needs=needs, class_="inline", id_=None, **values)


def undo_correction(view: View, id: str) -> Element | None:
    """Return the button that undoes the correction `id`; None if the reader lacks the right."""
    return action(view, "undo_correction", "Undo", key="u", id=id, back=f"/{id}")


def forget_link(view: View, id: str) -> Element | None:
    """Return the link to what would be forgotten with a row; None if the reader lacks the right."""
    return el("a", "Forget …", href=address("/forget", ids=id), data_key="f") if view.may("admin") else None


def kind_choice(kind: StatementKind) -> Element:
    """Return the choice of the kind of a new statement; `kind` is chosen first."""
    return choice("Kind", "kind", KIND_EXPLANATIONS.items(), kind)


def statement_filters(query: Mapping[str, str]) -> list[Element]:
    """Return fields that filter statements by kind, entity and time; `query` has their values."""
    return [
        choice("Kind", "kind", [("", "any"), *KIND_NAMES.items()], query.get("kind", "")),
        input_field("About", "entity", query.get("entity", "")),
        input_field("True from", "since", query.get("since", ""), hint="2026-10 or today"),
        input_field("Until", "until", query.get("until", "")),
        input_field("As of", "as_of", query.get("as_of", "")),
    ]
