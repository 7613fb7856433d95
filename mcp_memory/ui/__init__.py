"""The interface for people: pages over `Memory`, in a browser (`mcp-memory ui`) and inside a conversation (an MCP App).

    pages/       the pages by address, a module for each            pictures/   charts, timeline, graph, canvas as SVG
    elements     trees of checked elements, as HTML and as JSON     components  View, Page, and parts that pages share
    markdown     scenes and the persona as elements                 frame       the frame of every page in a browser
    app          the pages over HTTP, and `mcp-memory ui`           mcp_app     the pages as the MCP App shows them
    sessions     access to the pages                                responses   headers, forms, files, event streams
    static/      style sheet and scripts                            actions     changes made by forms
    confirmations  what pages say after them

Nothing is decided here: pages call verbs of `Memory` and show the results. Reading and all forms work without
JavaScript.
"""
