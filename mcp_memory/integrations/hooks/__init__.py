"""Commands that clients run at the events of a conversation, and their answers, which the daemon gives.

    command         the process that a client runs: asks the daemon (`mcp_memory.daemon`), or answers itself
    own_answers     the answers of that process, from the store by words alone
    daemon_client   connects to the daemon and starts it
    daemon_files    the files by which hook and daemon find each other; pending logs; the health of hooks
    events          events as clients describe them, and the forms of answers
    answers         the answer to each event, and which texts each conversation's context already contains
    tool_outputs    offloads large tool outputs
    transcripts     the clients' logs, searched for earlier recalls
    following       the clients' logs, read as they grow

If anything fails here, the user's work continues and the log in the home says why.
"""

STABLE_TOKENS = 700
"""The most tokens that are added at the start of a conversation, besides the canvas after a compaction."""
NEEDED_TOKENS = 395
"""The most tokens that are added to a prompt."""
