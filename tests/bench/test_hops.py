"""The count of functions that a warm call runs: shape and bookkeeping, no figures."""

from __future__ import annotations

import pytest

from bench.hops import VERBS, main


@pytest.mark.slow
def test_each_verb_has_its_functions_counted_and_one_has_them_listed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list", "conversation_search"])
    counts, *files = capsys.readouterr().out.split("\n\n")
    assert [line.split()[0] for line in counts.splitlines()] == list(VERBS)
    assert all(int(line.split()[1]) > 50 for line in counts.splitlines())
    assert any(text.startswith("longterm/search/search.py (") and "Search.__call__" in text for text in files)
    assert "models/llm.py" not in str(files)
