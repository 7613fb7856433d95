"""The verb of the search of all layers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, get_args

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import FoundLayer, FoundPage, Kind, Role
from mcp_memory.service.verbs.base import MAX_LIMIT, Verbs, check_range, reading
from mcp_memory.service.verbs.turns import MAX_NEIGHBOURS
from mcp_memory.store.values import Filters

if TYPE_CHECKING:
    from mcp_memory.longterm.search.naming import NamingMessage

LAYERS: tuple[FoundLayer, ...] = get_args(FoundLayer)


class SearchVerbs(Verbs):
    """Search all layers, and find the messages with a name."""

    @reading
    def find(
        self,
        query: str = "",
        *,
        layers: Sequence[FoundLayer] = (),
        session: str | None = None,
        project: str | None = None,
        client: str | None = None,
        role: Role | None = None,
        kind: Kind | None = None,
        scene: str | None = None,
        entity: str | None = None,
        since: str | None = None,
        until: str | None = None,
        as_of: str | None = None,
        neighbours: int = 0,
        limit: int = 10,
        cursor: str | None = None,
        in_period: bool = False,
    ) -> FoundPage:
        """Find turns, statements, lines of tool results and files, pages and entities in one list, best first.

        Rows with an identifier or a quoted phrase of the query come first, quarantined rows last. `layers` limits the
        search to some layers; so do filters that other layers do not have. Without a query turns are listed, the newest
        first, or statements if only these are searched. `since`, `until`, `neighbours` and `limit` are those of
        `conversation_search`, `project` is that of sessions (`core.projects`), `client` the program that recorded them,
        the other filters are those of `memory_search`. With `in_period`, a past or present time in the query filters,
        as `since` and `until` would, and is not searched for. Raises NotFound for an unknown session, scene or entity,
        InvalidInput for an unknown layer and a cursor of another search.
        """
        from mcp_memory.longterm.search import find

        check_range(neighbours, "neighbours", 0, MAX_NEIGHBOURS)
        if unknown := sorted(set(layers) - set(LAYERS)):
            raise InvalidInput(f"There is no layer {', '.join(unknown)}. Layers: {', '.join(LAYERS)}.")
        search = partial(find.find, layers=tuple(layers) or LAYERS, neighbours=neighbours, in_period=in_period)
        filters = Filters(
            session=session, project=project, client=client, role=role, kind=kind, scene=scene, entity=entity
        )
        return self._search_page(
            search, query, filters, since=since, until=until, as_of=as_of, limit=limit, cursor=cursor
        )

    @reading
    def messages_naming(self, name: str, *, limit: int = 10) -> list[NamingMessage]:
        """Return the newest messages with a name, or with its first word, newest first, without quarantined ones."""
        from mcp_memory.longterm.search.naming import newest_naming

        check_range(limit, "limit", 1, MAX_LIMIT)
        self._parts.indexing.catch_up()
        return newest_naming(self._store, self.space, name, limit=limit, at=self._parts.now())
