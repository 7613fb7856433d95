"""The indexes of the search: terms and their postings, vectors, and turn metadata.

    terms     the terms of rows, their version, reindexing    postings  rows by term
    outlines  metadata of all turns of a space
    vectors   the vectors of rows                             scan      exact nearest rows
    sketch    coarse vectors, for a faster search             rowids    row numbers of the index tables

Ranking is done elsewhere.
"""
