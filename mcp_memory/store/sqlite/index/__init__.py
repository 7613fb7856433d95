"""What a search is made of: words and where they stand, vectors and what is near, the outline of what was said.

    terms, term_ranges, renewal  the words of rows, and of which version they are      postings  where a word stands
    vectors, scan, sketch        what is near, exactly and fast                         outlines  all turns at a glance

How results are ranked is not known here.
"""
