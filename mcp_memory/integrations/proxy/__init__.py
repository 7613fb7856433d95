"""`mcp-memory wrap`: a proxy between any client and any MCP server that keeps large results out of the context.

What it guarantees: a message is passed on byte for byte, unless it is the answer to `tools/call` and large, or
to `tools/list`. So whatever a protocol generation knows (progress, cancellation, subscriptions, questions to
the user, methods yet to be invented) works unchanged. Whatever goes wrong with the memory, the result passes
as it came: a proxy fails open.

    tool      the tool it adds, to open what was kept
    listing   the answer to `tools/list`, edited            pure
    results   the answer to `tools/call`, edited
    lines     messages out of chunks of bytes
    keeper    the memory, opened at the first large result
    edit      what is changed, and what has to be known of the server for that
    relay     the two directions, and who waits for an answer
    client    its own standard input and output
    process   a server that is a command       url   a server that is an address
    run       from the command's options to an exit code

A server that is a command needs nothing of the MCP SDK: importing that takes longer than all the rest.
"""
