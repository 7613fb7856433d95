"""The indexes of the search: terms and their postings, vectors, and turn metadata.

    terms         the terms of rows, their version, reindexing    postings  rows by term
    vectors       the vectors of rows                             outlines  metadata of turns, and totals
    nearest_rows  the exact scan, and coarse vectors              rowids    row numbers of the index tables

Ranking is done elsewhere.
"""
