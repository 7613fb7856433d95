"""Embedding models: the bundled model, other models on this machine, and models that litellm reaches.

protocol     what every model offers             factory        the configured model
bundled      the model of this package           external       models on this machine, and remote models
classifiers, sentence_labels, rule_relevance     judgements by the bundled encoder
mapped_files the files of the bundled models
"""
