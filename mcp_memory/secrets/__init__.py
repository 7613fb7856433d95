"""Secrets in a text: recognised by their form, or by the name in front of them, and masked.

    forms   keys and tokens whose form their makers publish      named   values behind `password:`, `api_key =` …
    cards   numbers of payment cards, by issuer and checksum

Masking comes before anything is stored, indexed, shown or sent to a model. It cannot be undone, so it errs on the side
of leaving a text as it is: a value is taken for a secret when its form is that of a key, or when its name says so and
it looks like nothing else, such as a placeholder or a variable. `python -m bench.secrets` counts how often it errs.
"""

from mcp_memory.secrets.masking import (
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
