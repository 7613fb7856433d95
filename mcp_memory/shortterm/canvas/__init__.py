"""The canvas: the flowchart of a task, from a step that comes in to what stands in a context.

flowchart  a canvas as a value, and its text              label     its words: cleaned, coded for Mermaid, decoded
drawing    that, and how it is folded                     groups    nodes that stand as one
tasks      which canvas is meant by a task's words        boundary  where talk ends or begins one (`boundary_words`)
intent     what a call is for: routine or a turn          place     where a step goes: a move
landing    task, canvas and node of a call                edits     what is done beside the steps
patch      changes in words and order, checked            amend     edits kept, and rolled back
rebuild    a canvas drawn anew from moves and edits       history   other tasks by their metadata
phases     which steps belong together, what to call them fit       a canvas within a budget
fold       show, fold, unfold, complete, switch           view      as it stands in the context
picture    the canvas for people
"""
