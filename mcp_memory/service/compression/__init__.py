"""Lists of messages made to fit: for programs that own what goes to their model.

rules      when, how far, and when an edit pays for the cache that it breaks
messages   a list in a neutral form      forms    from and to OpenAI and Anthropic
replay     what was edited before        plan     what to edit now      in_use   what to spare
texts      what stands in its place      keep     what goes is stored first
run        one compression
"""
