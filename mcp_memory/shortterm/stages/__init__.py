"""What a model may do for tasks, in the background: better summaries of results, and a better drawing of a canvas.

Both are stages (see `mcp_memory.stage`) and both are optional: records and canvases are whole without them.
"""
