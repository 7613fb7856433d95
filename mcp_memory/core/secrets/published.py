"""Keys by the rules of gitleaks: `published.json`, which `scripts/refresh_published_keys.py` takes from its repository.

Each pattern begins with a prefix that only its maker uses, so nothing else needs to be known of the text around it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from mcp_memory.core.secrets.forms import FORMS, Form

__all__ = ["forms"]


@cache
def forms() -> tuple[Form, ...]:
    """Return all forms of keys: those written here, then those that gitleaks knows. Read once (1 ms)."""
    text = (resources.files("mcp_memory.core.secrets") / "published.json").read_text(encoding="utf-8")
    published = (
        Form(rule["id"].replace("-", " "), tuple(rule["hints"]), "(?a)" + rule["pattern"], begins=True)
        for rule in json.loads(text)["forms"]
    )
    return (*FORMS, *published)
