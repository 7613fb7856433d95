"""Short-term memory: a large tool result kept whole, and what stands for it in the context.

    records   a tool call in one line, its summary, its title
    label     words on a canvas: cleaned, coded for Mermaid, decoded
    canvas    the flowchart of a task as a value, and its text
    place     where a step goes on the canvas
    tasks     which canvas a call belongs to
    offload   a result on its way in: ref, record, canvas
    view      a canvas as it stands in the context, folded to a budget
    fold      fold, unfold, complete, switch
    drill     the way down: records, then raw text
    picture   the canvas coloured for people

`synopsis/` says what a raw text holds and `expand` shows parts of one; both see text only.
"""
