"""Embedding models: the bundled one, others on this machine, or any that litellm reaches.

factory      the model that the settings name       protocol   what every model offers
bundled      the model of this package              external   models on this machine, and remote ones
classifiers  judgements by the bundled encoder      pieces, tensors   its files
"""
