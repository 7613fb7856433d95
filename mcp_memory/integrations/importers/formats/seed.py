"""Seeds of TencentDB Agent Memory: {sessionKey, sessionId?, conversations: [[turn, …], …]}, alone or in
{sessions: […]}.
"""

from __future__ import annotations

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.generic import seed_records
from mcp_memory.integrations.importers.records import object_of

FORMAT = Format(
    title="a seed of TencentDB Agent Memory",
    location="a file of its seeds",
    matches=lambda value: "sessionKey" in (object_of(value) or {}) and "conversations" in (object_of(value) or {}),
    records=seed_records,
)
