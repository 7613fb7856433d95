"""Who asks, over HTTP and SSE, and what for: the door before everything else that the server does there.

    rights      what a client may do, and in which space; the rest of the server asks here
    limits      how often and how much
    credentials which client a bearer token is of: the setting's, the store's, or an authorization server's (`oauth`)
    gate        the door itself, an ASGI application around the SDK's

On stdio, and on this machine as long as no token was ever made, who asks is the owner of the memory.
"""
