"""What is admitted within a minute is the limit, in whatever order and however many requests come at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import anyio
import pytest

from mcp_memory.server.authentication import RateLimit, Rejected
from mcp_memory.server.http_middleware import ConcurrencyLimit

pytestmark = pytest.mark.anyio


class Bucket:
    """The store's side of a limit, which gives no more than it has. Its answers take a turn of the event loop."""

    def __init__(self, left: int) -> None:
        self.left, self.asked = left, 0

    async def take_requests(self, key: str, *, count: int, a_minute: int) -> int:
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        taken = min(count, self.left)
        self.left -= taken
        await anyio.lowlevel.checkpoint()
        return taken


async def admitted(limit: RateLimit, requests: int, *, at_once: int) -> int:
    count = 0

    async def one() -> None:
        nonlocal count
        with suppress(Rejected):
            await limit.take("laptop")
            count += 1

    for start in range(0, requests, at_once):
        async with anyio.create_task_group() as tasks:
            for _ in range(min(at_once, requests - start)):
                tasks.start_soon(one)
    return count


def limit_on(bucket: Bucket, per_minute: int) -> RateLimit:
    async def memory() -> Any:
        return cast("Any", bucket)

    return RateLimit("client", per_minute, memory)


@pytest.mark.parametrize("at_once", [1, 7, 40, 120, 700])
async def test_as_many_are_admitted_at_once_as_one_by_one(at_once: int) -> None:
    limit = limit_on(bucket := Bucket(600), 600)
    assert await admitted(limit, 120, at_once=at_once) == 120
    assert await admitted(limit, 700, at_once=at_once) == 480
    assert bucket.left == 0
    assert bucket.asked < 40  # 20 shares of 30; in vain, once in a tenth of a second


async def test_servers_of_one_memory_admit_the_limit_together() -> None:
    bucket = Bucket(600)
    counts = [await admitted(limit_on(bucket, 600), 400, at_once=40) for _ in range(3)]
    assert 600 - 3 * 30 < sum(counts) <= 600  # each may have a part of a share left


async def test_a_request_that_is_cancelled_while_it_waits_takes_nothing_from_the_others() -> None:
    limit = limit_on(Bucket(60), 60)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(limit.take, "laptop")
        tasks.cancel_scope.cancel()
    assert await admitted(limit, 100, at_once=20) >= 57  # at most one share was on its way


async def test_requests_held_at_once_are_never_more_than_allowed() -> None:
    limit, open_now, most = ConcurrencyLimit(5), 0, 0

    async def one() -> None:
        nonlocal open_now, most
        with limit.slot("laptop") as may_come:
            if may_come:
                open_now += 1
                most = max(most, open_now)
                await anyio.lowlevel.checkpoint()
                open_now -= 1

    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(one)
    assert (most, open_now) == (5, 0)
