"""The canvas: the flowchart of a task.

flowchart    nodes and edges as a value, and the `.mmd` text          folding  groups and phases within a budget
placement    the intent of a call, and the node where a step goes     edits    every other change
tasks        the task and canvas of a call, and where talk ends one task and begins another
versions     the next version of a canvas, an earlier one taken back, the words of forgotten results removed
view         what the context shows: show, fold, unfold, complete, switch; the picture for people
"""
