"""The text catalogue of the interface: all texts of pages and answers that do not come from the memory."""

from __future__ import annotations

import pkgutil
import tomllib


def _read_catalogue() -> dict[str, str]:
    """Return the texts by `page.name`."""
    data = pkgutil.get_data("mcp_memory.ui", "words.toml")
    assert data is not None
    pages = tomllib.loads(data.decode())
    return {f"{page}.{name}": text for page, texts in pages.items() for name, text in texts.items()}


WORDS = _read_catalogue()


def t(key: str, /, *, count: int | None = None, **values: object) -> str:
    """Return a text of the catalogue with its values; `count` chooses singular or plural and fills in `{count}`."""
    text = WORDS[key]
    if count is not None:
        singular, _, plural = text.partition("|")
        text = singular if count == 1 or not plural else plural
        values["count"] = f"{count:,}"
    return text.format(**values) if values else text
