"""What a model may do for tasks, in the background: better summaries of results, and a better order of a canvas.

Both are stages (see `mcp_memory.models.stage`) and both are optional: records and canvases are whole without them.

    summaries   lines for large results of which a program could not say much
    sample      what is shown of a raw result
    canvas      groups, titles, words on edges, and whether the task is over
    pieces      from a reply on a canvas to a patch that holds
    invented    names and numbers that were never shown
    committing  what is stored again where a step came between
"""
