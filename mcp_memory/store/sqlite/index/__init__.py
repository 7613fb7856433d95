"""The indexes of the search: terms and their postings, vectors, and turn metadata.

    terms         the terms of rows, their version, reindexing    postings  rows by term
    vectors       the vectors of rows                             outlines  metadata of turns, and totals
    vector_blocks  their tables       nearest_rows  their search  rowids    row numbers of the index tables

Ranking is done elsewhere.
"""
