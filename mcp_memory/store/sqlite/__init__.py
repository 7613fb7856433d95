"""The embedded engine: one SQLite file with FTS5 and vectors, and the files next to it.

    store        transactions, search and upkeep           database        the file, its writer and readers
    home         the folder and its permissions            migrations      the schema, step by step
    transaction  SQL and files of a transaction            copies          readable copies of rows
    index        terms and vectors for the search          checks          problems of rows and files
    upkeep       recovery, rebuild, repair, snapshots      unreadable      values that cannot be read

Most modules are functions that take a connection; `SQLiteStore` calls them in transactions.
"""
