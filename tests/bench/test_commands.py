"""What the commands of the benches have in common."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "bench", ["excerpts", "find", "offload", "outputs", "recall", "result_search", "retrieval", "vectors", "week_one"]
)
def test_what_cannot_be_read_ends_a_command_with_a_sentence(bench: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=rf"bench\.{bench}: .*nowhere.* cannot be read"):
        import_module(f"bench.{bench}").main([str(tmp_path / "nowhere")])
