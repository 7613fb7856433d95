"""What the objects of a history say, a module for each format. No I/O, no state.

told      the nouns that all of them yield, and fields that they share
logs      what logs of coding agents share: what is known so far, what nobody said, what is ours
claude_code  codex  gemini   their lines
generic   turns, conversations, seeds of TencentDB Agent Memory
memory_server  mem0  basic_memory  mempalace   what other memories hold      statements  as it can be held here
chatgpt   conversations of ChatGPT's export      claude_ai  those of Claude.ai's      exports  what the two share
"""
