"""The stand-in of an offloaded tool result: a summary of one line and a typed preview, made without a model.

    synopsis   tries one format after the other; each is described in a `SynopsisDraft`
    page       the bounded view of a result (lines, numbers, wrapping removed), and the focus of its call
    preview    the draft as text within its budget: facts, lines, and key words of the rest
    rare       which lines are unusual

The other modules have one format, or a few alike, each.
"""
