"""Search for rows by their words, meaning and context, ranked and paged.

query     a question, parsed                        search    finds candidates and ranks them
ranking   scores the candidates of a question       rerank    asks a model for a better order of the first
results   rows as shown: their best passage         pages     the answers of the search tools, page by page
explain   why a row was found, and where it ranks
"""
