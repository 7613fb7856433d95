"""Where to install this package from: the project's repository before its first release, the package index after it.

Until the release the name in the index is not ours, and anybody could register it. So while `RELEASED` is false,
nothing that this program prints, writes or documents fetches the package by its name. Standard library only.
"""

from __future__ import annotations

DISTRIBUTION = "memory-pyramid"
"""Name in the package index."""
RELEASED = False
"""Whether that name is ours in the index. Set with the first release."""
REPOSITORY = "https://github.com/mcp-memory/mcp-memory"
SOURCE = f"git+{REPOSITORY}"


def requirement(extra: str = "", *, released: bool = RELEASED) -> str:
    """Return the requirement string that installs the package, with an optional extra."""
    name = f"{DISTRIBUTION}[{extra}]" if extra else DISTRIBUTION
    return name if released else f"{name} @ {SOURCE}"


def install_hint(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{requirement(extra)}'"


def uvx_arguments(*, released: bool = RELEASED) -> tuple[str, ...]:
    """Return the arguments of `uvx` that start the program."""
    return (DISTRIBUTION,) if released else ("--from", SOURCE, "mcp-memory")
