"""The engine for many servers: one PostgreSQL database with pgvector, several spaces, any number of processes.

| module | does |
|---|---|
| `store` | the verbs of `store.protocol`: those of `store.sql`, and the search |
| `database` | transactions, and which are tried again |
| `pool` | connections, lent to threads |
| `commits` | how a transaction ended whose COMMIT was not answered |
| `failures` | errors of the server and of connections as errors that name the next step |
| `transaction` | a transaction of a space: its connection, raw results, word and vector indexes |
| `schema` | the tables of `sql.schema` as PostgreSQL has them, and the list of migrations |
| `terms`, `term_rows` | words by hashed terms under GIN |
| `vectors` | vectors by pgvector |
| `turn_columns` | turn metadata of the turns that a search met, and totals |
"""

from mcp_memory.store.postgres.store import PostgresStore, open_store

__all__ = ["PostgresStore", "open_store"]
