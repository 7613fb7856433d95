"""The stand-in of an offloaded tool result: a one-line summary and a typed preview, made without a model.

    synopsis      tries the formats in order; each describes a result in a `SynopsisDraft`
    page          the bounded view of a result (numbered lines without wrapping), and the focus of its call
    preview       renders a draft within its budget: facts, lines, and key words of the other lines
    rare          finds unusual rows
    instructions  removes passages that read like instructions to a model

Each other module describes one format or several related formats.
"""
