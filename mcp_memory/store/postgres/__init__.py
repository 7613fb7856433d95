"""The engine for many servers: one PostgreSQL database with pgvector, several spaces, any number of processes.

| module | does |
|---|---|
| `store` | the verbs of `store.protocol`: those of `store.sql`, and the search |
| `database` | connections, transactions, what is tried again, and errors that name the next step |
| `transaction` | a transaction of a space: its connection, raw results, word and vector indexes |
| `schema` | the tables of `sql.schema` as PostgreSQL has them, and the list of migrations |
| `search` | words by hashed terms under GIN, vectors by pgvector |
"""

from mcp_memory.store.postgres.store import PostgresStore, open_store

__all__ = ["PostgresStore", "open_store"]
