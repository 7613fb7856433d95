"""Entities: the people, places and things that atoms are about. Each has a main name and aliases.

A name belongs to one entity. Names are compared without case, width and white space. A name stays with the entity that
it was first given to, so that a wrong guess never merges two persons. The main name of the user is always `user`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from mcp_memory.core.text import normalize
from mcp_memory.core.types import Entity, EntityOrder, MentionedEntity
from mcp_memory.store.sql import quarantine_rows
from mcp_memory.store.sql.transaction import Transaction, from_ms, marks

OPEN = 2**63 - 1
"""Stands for the end of what has not ended."""
_USER = "user"
_LIKE = str.maketrans({sign: f"!{sign}" for sign in "!%_"})
_ORDERS: Mapping[EntityOrder, str] = {
    "statements": "many DESC, c.key",
    "last": "latest DESC, c.key",
    "name": "c.key",
}

_MENTIONED = (
    "EXISTS (SELECT 1 FROM mention m JOIN atom r ON r.space = m.space AND r.id = m.atom"
    " WHERE m.space = c.space AND m.entity = c.id AND r.tombstone IS NULL{})"
)
_HAS_NAME_ALONE = "NOT EXISTS (SELECT 1 FROM mention m WHERE m.space = c.space AND m.entity = c.id)"
_KNOWN = f"c.space = :space AND c.entity = c.id AND ({_HAS_NAME_ALONE} OR {_MENTIONED})"

KNOWN = _KNOWN.format("")
"""The condition that a row `c` is the main name of an entity that was not completely forgotten."""
_SHOWN = _KNOWN.format(f" AND {quarantine_rows.PASSES}")
"""Like KNOWN, without entities that only quarantined statements mention: their names may be part of an attack."""


def key(name: str) -> str:
    """Return a name in the form in which names are compared: `maya lopez` for `ＭＡＹＡ  Lopez`."""
    bare = normalize("NFKC", normalize("NFKC", name).casefold())
    return " ".join(bare.split())


def main_name(tx: Transaction, name: str) -> str:
    """Return the main name of the entity that has this name. An unknown name is returned without extra spaces."""
    stored = tx.get(
        "SELECT c.name FROM entity_name n JOIN entity_name c ON c.space = n.space AND c.id = n.entity"
        " WHERE n.space = :space AND n.key = ?",
        key(name),
    )
    return stored or _clean(name)


def make(tx: Transaction, name: str) -> None:
    """Create an entity with this name, unless an entity has it already."""
    if key(name):
        _get_or_make(tx, name)


def mention(tx: Transaction, atom: int, names: Iterable[str]) -> None:
    """Store which entities an atom mentions; unknown names become new entities."""
    entities = {_get_or_make(tx, name) for name in names if key(name)}
    rows = [(atom, entity) for entity in sorted(entities)]
    tx.many("INSERT INTO mention (space, atom, entity) VALUES (:space, ?, ?)", rows)


def names_of_atoms(tx: Transaction, atoms: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the main names of the entities that each atom mentions. Atoms without entities are left out."""
    names_by_atom = defaultdict[int, list[str]](list)
    if not atoms or not tx.has_any("mention"):
        return {}
    for atom, name in tx.all(
        "SELECT m.atom, n.name FROM mention m JOIN entity_name n ON n.space = m.space AND n.id = m.entity"
        f" WHERE m.space = :space AND m.atom IN ({marks(atoms)}) ORDER BY n.id",
        *atoms,
    ):
        names_by_atom[atom].append(name)
    return {atom: tuple(names) for atom, names in names_by_atom.items()}


def learn(tx: Transaction, aliases: Mapping[str, Sequence[str]]) -> None:
    """Add aliases to entities, given by name.

    If no entity has the name, but an alias is the main name of an entity, the name becomes an alias of that entity: if
    `Maya` is known, `Maya Lopez` with the alias `Maya` is the same person. Otherwise an unknown name becomes a new
    entity.
    """
    for name, others in aliases.items():
        names = [alias for alias in (name, *others) if key(alias)]
        if not key(name) or len(names) < 2:
            continue
        if _USER in map(key, names):
            _get_or_make(tx, _USER)
        chiefs = (number_of(tx, other, only="entity = id") for other in others)
        entity = number_of(tx, name) or next(filter(None, chiefs), None) or _get_or_make(tx, name)
        for alias in names:
            if number_of(tx, alias) is None:
                _insert(tx, alias, entity)


def list_entities(tx: Transaction, *, prefix: str = "", limit: int = 100) -> list[Entity]:
    """Return entities with a name that begins with `prefix` (without case).

    The entity with the most current atoms comes first.
    """
    if not tx.has_any("entity_name"):
        return []
    start = key(prefix)
    rows = tx.all(
        "SELECT c.id, c.name, (SELECT count(*) FROM mention m JOIN atom r ON r.space = m.space AND r.id = m.atom"
        "  WHERE m.space = c.space AND m.entity = c.id AND r.valid_to IS NULL AND r.tombstone IS NULL) AS current"
        f" FROM entity_name c WHERE {KNOWN} AND EXISTS (SELECT 1 FROM entity_name n WHERE n.space = c.space"
        "  AND n.entity = c.id AND substr(n.key, 1, length(?)) = ?) ORDER BY current DESC, c.key LIMIT ?",
        *(start, start, limit),
    )
    aliases = aliases_of(tx, [entity for entity, _, _ in rows])
    return [Entity(name=name, aliases=tuple(aliases[entity]), atoms=current) for entity, name, current in rows]


def often_mentioned(tx: Transaction, *, limit: int) -> list[Entity]:
    """Return the entities that the most atoms mention, whether these are current or not; `atoms` counts them all."""
    rows = tx.all(
        "SELECT c.id, c.name, coalesce(m.many, 0) FROM entity_name c LEFT JOIN (SELECT entity, count(*) AS many"
        " FROM mention WHERE space = :space GROUP BY entity) m ON m.entity = c.id"
        f" WHERE {KNOWN} ORDER BY coalesce(m.many, 0) DESC, c.key LIMIT ?",
        limit,
    )
    aliases = aliases_of(tx, [entity for entity, _, _ in rows])
    return [Entity(name=name, aliases=tuple(aliases[entity]), atoms=many) for entity, name, many in rows]


def with_facts(tx: Transaction, *, limit: int) -> list[tuple[str, ...]]:
    """Return the names of up to `limit` entities that have facts: of each the main name, then its aliases."""
    rows = tx.all(
        "SELECT DISTINCT c.id, c.name FROM (SELECT DISTINCT entity_key AS key FROM fact WHERE space = :space) f"
        " JOIN entity_name n ON n.space = :space AND n.key = f.key"
        " JOIN entity_name c ON c.space = :space AND c.id = n.entity ORDER BY c.id LIMIT ?",
        limit,
    )
    aliases = aliases_of(tx, [entity for entity, _ in rows])
    return [(name, *aliases[entity]) for entity, name in rows]


def mentioned(
    tx: Transaction, *, after: int = 0, text: str = "", order: EntityOrder = "statements", start: int = 0, limit: int
) -> list[MentionedEntity]:
    """Return the entities that current atoms with a number above `after` mention.

    The user is left out, and so are quarantined atoms, and entities without `text` (in any case) in a name.
    """
    if not tx.has_any("mention"):
        return []
    containing = f"%{key(text).translate(_LIKE)}%"
    rows = tx.all(
        "WITH counted AS MATERIALIZED (SELECT m.entity, count(*) AS many, max(r.valid_from) AS latest FROM atom r"
        " CROSS JOIN mention m ON m.space = r.space AND m.atom = r.id WHERE r.space = :space AND r.id > ?"
        f" AND r.valid_to IS NULL AND r.tombstone IS NULL AND {quarantine_rows.PASSES} GROUP BY m.entity)"
        " SELECT c.name, many, latest FROM counted JOIN entity_name c ON c.space = :space AND c.id = counted.entity"
        " WHERE c.key <> ? AND EXISTS (SELECT 1 FROM entity_name n WHERE n.space = c.space AND n.entity = c.id"
        f" AND n.key LIKE ? ESCAPE '!') ORDER BY {_ORDERS[order]} LIMIT ? OFFSET ?",
        *(after, key(_USER), containing, limit, start),
    )
    return [MentionedEntity(name=name, statements=count, last=from_ms(last)) for name, count, last in rows]


def newest_mentions(
    tx: Transaction, *, among: Sequence[int] | None = None, limit: int
) -> list[tuple[int, int, int, int]]:
    """Return the newest mentions, of the last `limit`: (atom, entity, start, end of its validity in ms or `OPEN`).

    Only mentions of the entities `among` are returned, if given. Forgotten and quarantined atoms are left out, and so
    is the user.
    """
    if not tx.has_any("mention"):
        return []
    # The newest mentions first, so that their atoms are read in order. The plus sign keeps SQLite from reading the
    # mentions of all entities in this order.
    chosen, newest = ("", "atom") if among is None else (f" AND entity IN ({marks(among)})", "+atom")
    return tx.all(
        f"SELECT m.atom, m.entity, r.valid_from, coalesce(r.valid_to, {OPEN}) FROM (SELECT space, atom, entity"
        f" FROM mention WHERE space = :space AND entity <> ?{chosen} ORDER BY {newest} DESC, entity LIMIT ?) m"
        " CROSS JOIN atom r ON r.space = m.space AND r.id = m.atom"
        f" WHERE r.tombstone IS NULL AND {quarantine_rows.PASSES}",
        *(number_of(tx, _USER) or 0, *(among or ()), limit),
    )


def names_by_number(tx: Transaction, entities: Sequence[int]) -> dict[int, str]:
    """Return the main names of entities, given by their numbers."""
    rows = tx.among("SELECT n.id, n.name FROM entity_name n WHERE n.space = :space AND n.id IN ({})", entities)
    return dict(rows)


def all_names(tx: Transaction) -> dict[str, str]:
    """Map each name of each entity to the main name of that entity, oldest first.

    Entities that only forgotten or quarantined statements mention are left out.
    """
    return dict(
        tx.all(
            "SELECT n.name, c.name FROM entity_name n JOIN entity_name c ON c.space = n.space AND c.id = n.entity"
            f" WHERE n.space = :space AND {_SHOWN} ORDER BY n.id"
        )
    )


def names(tx: Transaction, known_names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Map each of these names to all names of its entity, the main name first.

    Unknown names, and names of forgotten entities, are left out.
    """
    keys = {name: key(name) for name in known_names}
    rows = tx.among(
        "SELECT n.key, c.name, n.entity FROM entity_name n JOIN entity_name c ON c.space = n.space AND c.id = n.entity"
        f" WHERE n.space = :space AND {KNOWN} AND n.key IN ({{}})",
        sorted(set(keys.values())),
    )
    aliases = aliases_of(tx, [entity for _, _, entity in rows])
    names_by_key = {name_key: (name, *aliases[entity]) for name_key, name, entity in rows}
    return {name: names_by_key[name_key] for name, name_key in keys.items() if name_key in names_by_key}


def find_related(tx: Transaction, name: str, *, limit: int) -> list[tuple[int, str, int]]:
    """Return the entities that current atoms mention together with this entity, and the number of these atoms.

    Each is (number of the entity, main name, atoms). The entity with the most such atoms comes first.
    """
    return tx.all(
        "SELECT c.id, c.name, g.many FROM (SELECT m.entity, count(*) AS many FROM mention own"
        " CROSS JOIN atom r ON r.space = own.space AND r.id = own.atom"
        " CROSS JOIN mention m ON m.space = own.space AND m.atom = own.atom AND m.entity <> own.entity"
        " WHERE own.space = :space AND own.entity = ? AND r.valid_to IS NULL AND r.tombstone IS NULL"
        " GROUP BY m.entity) g CROSS JOIN entity_name c ON c.space = :space AND c.id = g.entity"
        " ORDER BY g.many DESC, c.key LIMIT ?",
        *(number_of(tx, name), limit),
    )


def aliases_of(tx: Transaction, entities: Sequence[int]) -> defaultdict[int, list[str]]:
    """Return the aliases of entities, without their main names, in the order in which they were learned."""
    aliases = defaultdict[int, list[str]](list)
    for entity, name in (
        ()
        if not entities
        else tx.all(
            "SELECT entity, name FROM entity_name WHERE space = :space AND id <> entity"
            f" AND entity IN ({marks(entities)}) ORDER BY id",
            *entities,
        )
    ):
        aliases[entity].append(name)
    return aliases


def number_of(tx: Transaction, name: str, *, only: str = "1 = 1") -> int | None:
    """Return the number of the entity that has this name, or None."""
    return tx.get(f"SELECT entity FROM entity_name WHERE space = :space AND key = ? AND {only}", key(name))


def _get_or_make(tx: Transaction, name: str) -> int:
    return number_of(tx, name) or _insert(tx, name, None)


def _insert(tx: Transaction, name: str, entity: int | None) -> int:
    """Add a name to an entity, or to a new entity if `entity` is None. Return the number of the name."""
    number = tx.next("entity_name")
    tx.insert("entity_name", id=number, key=key(name), name=_clean(name), entity=entity or number)
    return number


def _clean(name: str) -> str:
    return _USER if key(name) == _USER else " ".join(name.split())
