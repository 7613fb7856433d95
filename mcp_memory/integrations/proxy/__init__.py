"""`mcp-memory wrap`: a proxy between any client and any MCP server that keeps large results out of the context.

A message is passed on byte for byte, unless it is a large answer to `tools/call`, or the answer to `tools/list`: every
other feature of any protocol generation works unchanged. If the memory fails, the result passes unchanged.

    relay          both directions of a connection; `wrap` puts the parts together
    answer_editor  edits answers: the added tool, wider output schemas, large texts replaced by notes
    kept_results   the memory, opened at the first large result; the tool that expands kept results
    stdio          messages as lines; our standard input and output; a server started by a command
    http_server    a server at a URL

Wrapping a command loads nothing of the MCP SDK, whose import takes longer than everything else.
"""
