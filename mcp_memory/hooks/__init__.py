"""Memory that is used without being asked: what clients run at the events of a conversation.

manifest    which events, as a client's configuration says it
"""
