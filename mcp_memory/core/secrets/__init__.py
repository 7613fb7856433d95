"""Finds secrets in texts and masks them: by format, by the name in front of them, or by the structure around them.

    key_formats    keys and tokens whose format their makers publish; those of gitleaks are data
    assignments    `DB_PASSWORD=…`, `"api_key": "…"`      structures   tables, `.netrc`, Kubernetes …
    prose          statements: "my password is …"         card_numbers   by issuer and checksum
    values         random and chosen values, words and placeholders

Masking comes before anything is stored, indexed, logged, shown or sent to a model, and cannot be undone. So it has
two levels. A message is also read as prose. A tool result is evidence: there a secret is masked only where a program
would read it as one, and a value that reads like words of code or talk stays. `python -m bench.secrets` counts how
often both err.
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
