"""Secrets in a text: recognised by their form, by the name in front of them or the structure around them, and masked.

    key_formats    keys and tokens whose format their makers publish; those of gitleaks are data
    assignments    `DB_PASSWORD=…`, `"api_key": "…"`      structures   tables, `.netrc`, Kubernetes …
    prose          what people say: "my password is …"    card_numbers   by issuer and checksum
    values         what a value looks like: random, chosen, a word, or a placeholder

Masking comes before anything is stored, indexed, logged, shown or sent to a model, and cannot be undone. So it has two
levels. A message is read as prose, too. A tool result is evidence: there only what a program would read as a secret is
masked, and a value that reads like words of code or talk stays. `python -m bench.secrets` counts how often both err.
"""

from mcp_memory.core.secrets.masking import (
    MASK,
    Secret,
    find,
    holds_key,
    holds_secret,
    mask,
    mask_bytes,
    mask_id,
    mask_lines,
    mask_values,
    states_secret,
)

__all__ = [
    "MASK",
    "Secret",
    "find",
    "holds_key",
    "holds_secret",
    "mask",
    "mask_bytes",
    "mask_id",
    "mask_lines",
    "mask_values",
    "states_secret",
]
