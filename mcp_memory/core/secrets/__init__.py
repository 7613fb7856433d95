"""Secrets in a text: recognised by their form, by the name in front of them or the structure around them, and masked.

    forms, published   keys and tokens whose form their makers publish; those of gitleaks are kept as data
    names, named       assignments: `DB_PASSWORD=…`, `"api_key": "…"`      structures   tables, `.netrc`, Kubernetes …
    prose              what people say: "my password is …"      cards   payment cards, by issuer and checksum
    members            JSON values, such as the arguments of calls
    values, vocabulary what a value looks like: drawn, chosen, a word, or something that stands for another value

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
    states_secret,
)
from mcp_memory.core.secrets.members import mask_values

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
