"""A server without clients, to be killed: `python -m tests.postgres.worker URL HOME MINUTES-FAST [ask]`.

It distils what is due, with a clock that is so many minutes fast. With `ask` it says so when it asks its model, which
never answers.
"""

from __future__ import annotations

import sys
import threading
from datetime import UTC, datetime, timedelta

import anyio
import anyio.to_thread

from bench.reader import Reader
from mcp_memory.models.llm import Completion, ModelPrompt
from mcp_memory.service.memory import open_memory


class Mute(Reader):
    def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
        print("asked", flush=True)
        threading.Event().wait()
        raise AssertionError


async def main(url: str, home: str, fast: str, *ask: str) -> None:
    def now() -> datetime:
        return datetime.now(UTC) + timedelta(minutes=float(fast))

    llm = Mute() if ask else Reader()
    async with open_memory(store=url, home=home, embedder="none", llm=llm, now=now, llm_daily_tokens=10**9,
                           llm_hourly_tokens=10**9):  # fmt: skip
        await anyio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
