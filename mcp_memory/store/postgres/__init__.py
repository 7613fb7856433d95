"""The engine for many servers: a PostgreSQL database with pgvector, used by any number of processes.

| module | does |
|---|---|
| `store` | the methods of `store.protocol`: transactions for `store.sql`, and the search |
| `database` | transactions and their retries |
| `pool` | connections, lent to threads |
| `replica` | a standby that answers reads |
| `connection` | converts values and rows to the form that `store.sql` uses |
| `clock` | the time of the database, by which rows are dated and deleted |
| `notifications` | NOTIFY and LISTEN: announces commits to other servers at once |
| `commits` | finds out whether a transaction was committed if its COMMIT was not answered |
| `failures` | translates errors of the server and of connections; each names the next step |
| `transaction` | a transaction of a space: its connection, raw results, word and vector indexes |
| `objects` | the bytes of raw results: in rows, or in an S3-compatible bucket |
| `object_upkeep` | deletes objects from the bucket that no row refers to |
| `schema`, `migrations` | the tables of `sql.schema` in PostgreSQL's dialect; the steps that change them |
| `terms`, `term_rows` | the word index: hashed terms under GIN |
| `vectors` | the vector index: pgvector |
| `moving` | the source or target of a move between engines |
| `turn_columns` | turn metadata of the turns that a search matched, and totals |
"""

from mcp_memory.core.distribution import install_hint
from mcp_memory.core.errors import InvalidInput

try:
    import psycopg  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError:
    raise InvalidInput(
        f"Setting 'store' names a PostgreSQL database, and its driver is not installed: `{install_hint('postgres')}`."
    ) from None
