"""Reads `config.toml`, unchecked; `config` validates the values.

A hook that answers without the daemon needs two of them at once, and has no time to import the validation.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.paths import home_problem
from mcp_memory.core.regular_files import read_regular

PREFIX = "MCP_MEMORY_"
"""Prefix of the environment variables of settings."""
_LARGEST = 2**20  # bytes of a `config.toml`


def read_config(home: Path) -> dict[str, Any]:
    """Return the values of `config.toml` in a home, `{}` without that file.

    Raises InvalidInput if it cannot be read or is not valid TOML.
    """
    path = home / "config.toml"
    try:
        text = read_regular(path, _LARGEST).decode()
    except OSError as error:
        if error.errno == errno.ENOENT:
            return {}
        why = home_problem(path.parent.absolute()) if error.errno not in (errno.ESPIPE, errno.EFBIG) else None
        raise InvalidInput(why or f"{path} cannot be read: {error.strerror}. Mend or remove it.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 (byte {error.start + 1}). Mend or remove it.") from None
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not valid TOML ({error}). Mend or remove it.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} has a number or a nesting that is too large to read. Mend it.") from None
