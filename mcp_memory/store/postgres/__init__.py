"""The engine for many servers: one PostgreSQL database with pgvector, several spaces, any number of processes.

| module | does |
|---|---|
| `store` | the verbs of `store.protocol`: those of `store.sql`, and the search |
| `database` | transactions, and which are tried again |
| `pool` | connections, lent to threads |
| `notifications` | NOTIFY and LISTEN: other servers hear of a commit at once |
| `commits` | how a transaction ended whose COMMIT was not answered |
| `failures` | errors of the server and of connections as errors that name the next step |
| `transaction` | a transaction of a space: its connection, raw results, word and vector indexes |
| `objects` | the bytes of raw results: in rows, or in an S3-compatible bucket |
| `object_upkeep` | deletes objects from the bucket that no row names |
| `schema`, `migrations` | the tables of `sql.schema` as PostgreSQL has them; the steps that change them |
| `terms`, `term_rows` | words by hashed terms under GIN |
| `vectors` | vectors by pgvector |
| `moving` | a database that a memory is moved from or to |
| `turn_columns` | turn metadata of the turns that a search met, and totals |
"""

from mcp_memory.core.distribution import install_hint
from mcp_memory.core.errors import InvalidInput

try:
    import psycopg  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError:
    raise InvalidInput(
        f"Setting 'store' names a PostgreSQL database, and its driver is not installed: `{install_hint('postgres')}`."
    ) from None
