"""Checks a statement against the words it comes from, and against their speaker.

    comparison  compares a statement with words, by terms and by meaning; finds denials, swapped names and values
    support     whether words support a statement or a rule
    trust       sources, and what each may claim       evidence  `verify` and `why`

The patterns and word lists of all languages are in `words/verification.txt`.
"""
