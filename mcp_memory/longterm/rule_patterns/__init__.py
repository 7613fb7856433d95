"""How people say standing rules, by language: patterns over a sentence, and the words that each needs.

    row           what a pattern is
    english german dutch scandinavian french spanish portuguese italian slavic_turkic east_asian   the patterns

Nothing is compiled before a text needs it.
"""
