"""Search for rows by their words, meaning and context, ranked and paged."""
