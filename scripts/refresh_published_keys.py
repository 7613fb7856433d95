"""Take the forms of keys that gitleaks publishes into the package: `python scripts/refresh_published_keys.py FILE DATE`

FILE is `config/gitleaks.toml` of a checkout, DATE the day of its last commit (`git log -1 --format=%cs`). Writes
`mcp_memory/core/secrets/published.json`: the names and patterns of the rules that begin with a prefix which only their
maker uses. Left out are rules whose value has no form of its own (`assignments.py` there reads names), and rules that
`key_formats.py` there has in a wider form.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent.parent / "mcp_memory" / "core" / "secrets" / "published.json"
LEFT_OUT = {
    "clickhouse-cloud-api-secret-key": "its prefix begins many a hash",
    "vault-service-token": "`s.` begins many a name in code",
    "curl-auth-header": "a command, which forms.py reads",
    "curl-auth-user": "a command, which forms.py reads",
    "nuget-config-password": "an attribute, which structures.py reads",
    "jwt": "forms.py",
    "jwt-base64": "a base64 text of a token's beginning is met in other data",
    "private-key": "forms.py",
    "facebook-access-token": "begins with digits",
    "flutterwave-public-key": "is public",
    "lob-pub-api-key": "is public",
}
_NAMED = r"[\w.-]{0,50}?"
_ENDS = re.compile(re.escape(r"""(?:[\x60'"\s;]|\\[nr]|$""") + r"(?:\|\\b)?\)")
"""The character behind a key, which gitleaks takes with it."""


def forms(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the id, the hints and the pattern of each rule that can be matched from a hint on."""
    kept: list[dict[str, Any]] = []
    for rule in rules:
        source = rule.get("regex", "")
        if not source or rule["id"] in LEFT_OUT or _NAMED in source:
            continue
        pattern = python_pattern(_ENDS.sub(r"(?![A-Za-z0-9])", source))
        hints = [hint for hint in rule.get("keywords", []) if len(hint) >= 3 and begins_with(pattern, hint)]
        if hints:
            kept.append({"id": rule["id"], "hints": hints, "pattern": pattern})
    return kept


def begins_with(pattern: str, hint: str) -> bool:
    """Return whether every text that the pattern matches can begin with the hint: their first letters are the same."""
    plain = re.sub(r"\\([.-])", r"\1", re.sub(r"\(\?-?i?:", "(", pattern)).lower()
    head = re.sub(r"^(?:\\b|\()*", "", plain)
    alternatives = re.match(r"[^()\[\]{}+*?]+", head)
    return alternatives is not None and any(
        alternative and (alternative.startswith(hint) or hint.startswith(alternative)) and len(alternative) >= 3
        for alternative in alternatives[0].split("|")
    )


def python_pattern(source: str) -> str:
    """Return a pattern of Go as Python reads it: a flag inside it holds to the end of its group."""
    source = source.replace("[[:alnum:]]", "[A-Za-z0-9]").replace(r"\z", r"\Z")
    made: list[str] = []
    opened = [0]  # for each group: how many flags were opened in it
    at, in_class = 0, False
    while at < len(source):
        if source[at] == "\\":
            made.append(source[at : at + 2])
            at += 2
            continue
        if not in_class and (flag := re.match(r"\(\?(-?i)\)", source[at:])):
            made.append(f"(?{flag[1]}:")
            opened[-1] += 1
            at += flag.end()
            continue
        if in_class:
            in_class = source[at] != "]"
        elif source[at] == "[":
            in_class = True
        elif source[at] == "(":
            opened.append(0)
        elif source[at] == ")":
            made.append(")" * opened.pop())
        made.append(source[at])
        at += 1
    made.append(")" * opened.pop())
    pattern = "".join(made)
    re.compile(pattern)
    return pattern


def main() -> None:
    source, day = sys.argv[1:]
    rules = tomllib.loads(Path(source).read_text(encoding="utf-8"))["rules"]
    kept = forms(rules)
    data = {"source": "gitleaks, config/gitleaks.toml (MIT)", "read": day, "forms": kept}
    OUT.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(kept)} of {len(rules)} rules")


if __name__ == "__main__":
    main()
