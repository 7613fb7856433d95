"""What a page shows: its text, its links, its forms with their fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcp_memory.service.memory import Memory
from mcp_memory.ui.actions import Call, run
from mcp_memory.ui.components import Page
from mcp_memory.ui.elements import Element, text_of
from mcp_memory.ui.sessions import Reader


@dataclass(frozen=True)
class Form:
    """Where a form goes, and the values that it has: hidden ones, and fields elsewhere that name it."""

    action: str
    method: str
    values: dict[str, list[str]]
    words: str


def elements(page: Page) -> Iterator[Element]:
    """Yield every element of a page, in order."""
    waiting = [node for node in reversed(page.body) if isinstance(node, Element)]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [child for child in reversed(one.children) if isinstance(child, Element)]


def text(page: Page) -> str:
    return "\n".join(text_of(node) for node in page.body)


def links(page: Page) -> list[str]:
    return [one.attributes["href"] for one in elements(page) if "href" in one.attributes]


def forms(page: Page) -> list[Form]:
    return [_form(one, page) for one in elements(page) if one.tag == "form"]


def _form(form: Element, page: Page) -> Form:
    inside = [one for one in elements(Page(title="", body=(form,))) if "name" in one.attributes]
    name = form.attributes.get("id")
    outside = [one for one in elements(page) if name and one.attributes.get("form") == name]
    values: dict[str, list[str]] = {}
    for field in (*inside, *outside):
        values.setdefault(field.attributes["name"], []).append(field.attributes.get("value", ""))
    action, method = form.attributes["action"], form.attributes.get("method", "get")
    return Form(action=action, method=method, values=values, words=text_of(form))


async def send(memory: Memory, form: Form, **filled: str) -> str | Page:
    """Send a form as a browser does that has nothing ticked but what is `filled` in; values of a name are joined."""
    values = {name: " ".join(given) for name, given in form.values.items()} | filled
    reader = Reader(space=memory.space, is_owner=True)
    done = await run(form.action.removeprefix("/do/"), Call(memory=memory, reader=reader, form=values))
    return done if isinstance(done, Page) else done.partition("?done=")[0]
