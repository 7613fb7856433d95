"""L3: the one page about the user."""
