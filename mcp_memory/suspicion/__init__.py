"""Detects prompt injection in text that a model will read. Pure; needs no language model.

flags                  the signs of injection in a text; protects the tag around recalled text
disguises              decodes disguised text, and splits off what introduces a message
injected_instructions  instructions to a model, by the words of twenty-eight languages and by the bundled encoder
lexicon                the words of attacks, one file a language
marks.txt              patterns of impersonation: of a speaker, a tool call or an answer, in any language
signs.txt              combinations of concepts that are an attack
"""
