"""`python -m bench.claims` reports what becomes of an agent's claims about the user."""

from __future__ import annotations

from bench.claims import measure, table

TURNS = [{"role": "user", "content": "I used to live in Graz."}]


async def test_honest_and_changed_claims_are_counted_apart() -> None:
    claims = [
        {"turns": TURNS, "claim": "The user used to live in Graz.", "kind": "persona", "supported": True},
        {"turns": TURNS, "claim": "The user lives in Graz.", "kind": "persona", "supported": False},
        {"turns": TURNS, "claim": "The user keeps bees.", "kind": "persona", "supported": False},
    ]
    counts = await measure(claims)
    assert (dict(counts[True]), dict(counts[False])) == ({"user's words": 1}, {"user's words": 1, "waits": 1})
    assert [line.split()[:2] for line in table(counts)][1:] == [["honest", "1"], ["changed", "2"]]
