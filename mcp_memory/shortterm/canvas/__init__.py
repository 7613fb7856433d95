"""The canvas: the flowchart of a task.

flowchart    nodes and edges as a value, and the `.mmd` text          folding  groups and phases within a budget
placement    the intent of a call, and the node where a step goes     edits    every other change, as a value
tasks        the task and canvas of a call; `boundaries` finds where talk ends one task and begins another
replay       canvases from their history: rebuild, amend, undo, forget
view         what the context shows: show, fold, unfold, complete, switch      picture  the canvas for people
"""
