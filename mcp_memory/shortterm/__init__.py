"""Short-term memory: a large tool result kept whole, and what stands for it in the context.

    records   a tool call in words: its line, its title, its summary      intent    what it is for
    label     words on a canvas: cleaned, coded for Mermaid, decoded
    canvas    the flowchart of a task as a value, and its text            drawing   that, and how it is folded
    tasks     which canvas is meant by a task's words                     boundary  where talk ends or begins one
    place     where a step goes on the canvas: a move                     landing   task, canvas and node of a call
    offload   a result on its way in: ref, record, canvas
    groups    nodes that stand as one                                     patch     changes in words and order, checked
    edits     what is done to a canvas beside its steps                   amend     edits kept, and rolled back
    rebuild   a canvas drawn anew from moves and edits                    history   other tasks by their metadata
    phases    which steps belong together, and what to call them          fit       a canvas within a budget
    fold      show, fold, unfold, complete, switch                        view      as it stands in the context
    drill     the way down: records, then raw text                        picture   the canvas for people
    chunks    results cut for the search                                  stand_in  what is read in a result's place

`synopsis/` says what a raw text holds and `expand` shows parts of one; both see text only. `stages/` is what a model
may better of records and canvases, in the background.
"""
