"""Short-term memory: large tool results are stored, and a short stand-in replaces each in the context.

offload, calls    store a result: ref, record, step on the canvas
expand_node       expands a canvas, node or ref; `expand` formats raw text by page, lines, grep or JSON path
chunks            indexes the raw text
synopsis/         the summary and preview of a result, without a model; it sees text only
canvas/           the flowchart of a task
summary_stage     better summaries by a model, in the background
canvas_stage      groups, titles and edge labels by a model; `replies` checks the replies of both stages
"""
