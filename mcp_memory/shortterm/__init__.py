"""Short-term memory: a large tool result kept whole, and what stands for it in the context.

    records   a tool call in words: its line, its title, its summary      secrets   what is masked in them
    label     words on a canvas: cleaned, coded for Mermaid, decoded
    canvas    the flowchart of a task as a value, and its text
    place     where a step goes on the canvas                             tasks     which canvas a call is for
    offload   a result on its way in: ref, record, canvas
    groups    nodes that stand as one                                     view      a canvas within a budget
    fold      show, fold, unfold, complete, switch                        picture   the canvas for people
    drill     the way down: records, then raw text

`synopsis/` says what a raw text holds and `expand` shows parts of one; both see text only. `stages/` is what a model
may better of records and canvases, in the background.
"""
