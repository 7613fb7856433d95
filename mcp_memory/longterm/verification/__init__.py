"""Checks a statement against the words it comes from, and against their speaker.

comparison    compares texts by terms and by meaning     values  numbers, dates and names that the words do not have
own_words     the user's sentences that support a claim  stated_facts  whether a sentence states a fact and no more
trust         sources, their rights, quarantine          claims  accepts the statements that an agent brings
evidence      `verify` and `why`

The patterns and word lists of all languages are in `words/verification.txt`.
"""
