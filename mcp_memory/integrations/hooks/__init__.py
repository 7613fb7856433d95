"""Commands that clients run at the events of a conversation, and the hook daemon that answers them.

    command         the process that a client runs: asks the daemon, or starts it; never fails
    events          the clients' events, and the hooks to install for them
    endpoint        where hook and daemon find each other; logs still to be read; the health of hooks
    daemon          the process that keeps the memory open
    conversations   the work at each event, and the texts already in each conversation's context
    tool_outputs    large tool outputs, offloaded
    transcripts     the clients' own logs: followed as they grow, scanned for earlier recalls

If anything fails here, the user's work goes on and the log in the home says so.
"""
