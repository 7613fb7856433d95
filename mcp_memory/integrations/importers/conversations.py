"""Stores conversations that plugins of clients hand over, in the form of the client's store.

The format of that store reads them, so a later import of the store finds each turn and result stored already. A plugin
hands over the same messages again with every turn, so what was missed once is stored by the next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from anyio.to_thread import run_sync as to_thread

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.logs import SafeText
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.follow import (
    LIVE_FOR,
    classify_result,
    keep_result,
    new_turn,
    record_new_turns,
    select_new_results,
)
from mcp_memory.integrations.importers.format import AnyRecord
from mcp_memory.integrations.importers.formats import hermes, openclaw, opencode
from mcp_memory.integrations.importers.log_lines import is_own, is_stand_in
from mcp_memory.integrations.importers.records import ImportedResult, ImportedTurn, SkippedParts, SourceValue
from mcp_memory.integrations.importers.report import ImportCounts
from mcp_memory.service.memory import Memory

logger = logging.getLogger(__name__)

_RECORDS: Mapping[str, Callable[[SourceValue, SkippedParts], Iterator[AnyRecord]]] = {
    "openclaw": openclaw.live_records,
    "hermes": hermes.live_records,
    "opencode": opencode.session_records,
}


async def store_conversation(memory: Memory, client: str, session: str, conversation: Any) -> None:
    """Store the new turns and large results of a conversation. Results of the last hour also go to its canvas.

    Raises InvalidInput for a client whose plugin hands over no conversations.
    """
    if client not in _RECORDS:
        raise InvalidInput(f"{client!r} hands over no conversations. Known: {', '.join(_RECORDS)}.")
    turns, results = await to_thread(_read, client, conversation)
    await record_new_turns(memory, session, turns, ImportCounts())
    since = datetime.now(UTC) - LIVE_FOR
    for result in await select_new_results(memory, session, results):
        if classify_result(result) == "large":
            try:
                await keep_result(memory, session, result, result.text, since=since)
            except InvalidInput as error:
                logger.warning("a result of %s was left out: %s", SafeText(client), error)
    for result in results:
        if result.call is not None and is_stand_in(result.text) and not is_own(result.tool):
            await memory.note_replaced(session, result.call, result.text, at=result.said_at)


def _read(client: str, conversation: Any) -> tuple[dict[str, NewTurn], list[ImportedResult]]:
    records = [*_RECORDS[client](SourceValue(conversation, client), SkippedParts())]
    said = [record for record in records if isinstance(record, ImportedTurn) and record.content.strip()]
    turns = [new_turn(turn) for turn in said if turn.name != "title"]  # a title is still going to change
    results = [record for record in records if isinstance(record, ImportedResult)]
    return {str(turn.client_id): turn for turn in turns}, results
