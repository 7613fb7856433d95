"""Memory that is used without being asked: what clients run at the events of a conversation.

    kinds           what clients call their events, and what they are to us
    manifest        which hooks a client is to run, as its configuration says it
    client          what runs at an event: asks the resident, or starts it, and never fails
    rendezvous      where the two find each other, and how each knows the other
    notes           what is still to be read, whatever is killed
    resident        the process that keeps the memory open: its life, its lock, its wire
    opening         its memory
    conversations   what becomes of an event; what each context was told
    dialects        the events and answers of each client, as one
    events          what is told at the events, and kept of a compaction
    offloading      large tool outputs, kept out of the context      outputs   their shapes
    following       logs, read as they grow
    recollecting    what a context was told before this process was there
    health          how all of it is, for `doctor`

Whatever fails here, the user's work goes on, and the log in the home says so.
"""
