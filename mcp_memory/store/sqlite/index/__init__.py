"""The indexes of the search: terms and their postings, vectors, and turn metadata.

    terms          the terms of rows, their version, reindexing    term_rows     rows by term
    vectors        the vectors of rows                             outlines      metadata of turns, and totals
    vector_blocks  tables of vectors                               nearest_rows  search in tables of vectors
    rowids         row numbers of the index tables                 positions     makes older word indexes smaller

Ranking is done in `mcp_memory.longterm.search`.
"""
