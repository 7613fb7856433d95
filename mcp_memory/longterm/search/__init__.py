"""Search for rows by their words, meaning and context, ranked and paged.

query          parses a question                      search   finds candidates, words and vectors at once
ranking        scores the candidates                  rerank   asks a model for a better order of the first results
answerability  whether the memory knows an answer     changed  turns whose value a later turn replaced
entity_names   finds the entity that a name means     results  searches lines of tool results
pages          the two search tools, page by page     explain  why a row has its rank
"""
