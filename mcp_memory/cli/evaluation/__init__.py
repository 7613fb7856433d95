"""Measures search on a person's own memory: known-item questions mined from it, ours beside its floors.

    talk      the turns, read once, and what their words tell
    mining    questions of four kinds, each with the turn that is sought
    asking    all of them asked of each system, in one run
    figures   means and rates with their intervals
    report    the whole of it, and what may be said of a difference

Nothing is written, no text leaves the process unless examples are asked for, and no figure is made without
its interval and its floors. What it does not know: whether people would ask such questions. A mined question
compares searches on one memory; it says nothing about another memory, and its figures are no grades.
"""
