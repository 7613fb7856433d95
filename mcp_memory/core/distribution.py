"""Where this package is installed from: the project's repository until it is released, the package index after that.

Before its release the name in the index is free, and anybody could register it. So nothing that this program prints,
writes or documents fetches the package by its name while `RELEASED` is false. Standard library only.
"""

from __future__ import annotations

DISTRIBUTION = "memory-pyramid"
"""Its name in the package index."""
RELEASED = False
"""Whether that name is ours in the index. Set with the first release."""
REPOSITORY = "https://github.com/mcp-memory/mcp-memory"
SOURCE = f"git+{REPOSITORY}"


def requirement(extra: str = "", *, released: bool = RELEASED) -> str:
    """Return the requirement that installs the package, with an extra."""
    name = f"{DISTRIBUTION}[{extra}]" if extra else DISTRIBUTION
    return name if released else f"{name} @ {SOURCE}"


def install_hint(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{requirement(extra)}'"


def uvx_arguments(*, released: bool = RELEASED) -> tuple[str, ...]:
    """Return the arguments with which `uvx` starts the program."""
    return (DISTRIBUTION,) if released else ("--from", SOURCE, "mcp-memory")
