"""Authentication and authorization of HTTP and SSE clients.

    authentication  an ASGI application around the SDK's: checks host, token, space and rate of every request
    oauth           access tokens of an authorization server
    hosts           names by which the server may be reached
    authorization   rights of a client, and its space; the rest of the server asks here

On stdio, and on this machine as long as no token was ever made, the client is the owner of the memory.
"""
