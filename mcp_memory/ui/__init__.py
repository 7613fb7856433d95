"""The interface for people: pages over `Memory`, in a browser (`mcp-memory ui`) and inside a conversation (an MCP App).

    elements     trees of checked elements, as HTML and as JSON     words       the catalogue of what the interface says
    views        a request for a page, and the page                 components  parts that pages share
    pages/       the pages by address                               markdown    scenes and persona as elements
    pictures/    charts, timeline, graph, canvas as SVG             actions     the changes that forms make
    app          the pages over HTTP                                sessions    access to the pages
    static/      the style sheet, the scripts of the page, and the App; `server.apps` gives it to MCP clients

Nothing is decided here: pages call verbs of `Memory` and show the results. All that reads, and every form, works
without JavaScript.
"""
