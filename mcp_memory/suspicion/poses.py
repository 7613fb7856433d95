"""Marks of text that poses as something else: as another speaker, as a tool's call or answer, as the wire between them.

Also a picture whose address is filled with what a model knows, and a call of this memory's own tools. Marks are the
same in all languages; what is said in words is for `orders`.
"""

from __future__ import annotations

from mcp_memory.suspicion.rows import rows

__all__ = ["POSES"]

POSES = rows(
    (
        "role",
        "<|",
        r"<\|\s*/?\s*(?:im_start|im_end|im_sep|system|user|assistant|start_header_id|end_header_id|eot_id|endoftext|"
        r"begin_of_text|end_of_turn)\s*\|>",
    ),
    (
        "role",
        "start_of_turn end_of_turn _of_turn [inst] [/inst] <<sys <</sys <｜",
        r"</?\s*(?:start_of_turn|end_of_turn)\s*>|\[/?INST\]|<</?SYS>>|<｜(?:User|Assistant|begin▁of▁sentence)｜>",
    ),
    (
        "role",
        "<system </system",
        r"</?\s*system(?:[-_ ](?:prompt|message|reminder|instructions?|override|note|notice|alert))\b[^<>\n]{0,80}>",
    ),
    (
        "role",
        "</",
        r"</\s*(?:user|human|user_query|user_message|assistant|conversation|context|document|untrusted|data|memory|memories)"
        r"\s*>\s*\n?[^\n]{0,40}(?:<\s*/?\s*(?:system|user|human|assistant)|\b(?:system|assistant|human|user)\s*:)",
    ),
    (
        "call",
        "function_calls function_results tool_call tool_calls tool_use tool_result tool_results tool_response"
        " tool_output tool_outputs",
        r"</?\s*(?:antml:)?(?:function_calls|function_results|tool_calls?|tool_use|tool_results?|tool_response"
        r"|tool_outputs?)\b[^<>\n]{0,120}>|[\"']type[\"']\s*:\s*[\"']tool_(?:use|result)[\"']",
    ),
    ("call", "function_call function_call_output", r"[\"']type[\"']\s*:\s*[\"']function_call(?:_output)?[\"']"),
    ("call", "invoke parameter <｜", r"<\s*(?:antml:)?(?:invoke|parameter)\s+name\s*=|<｜tool▁"),
    ("call", "tools & method", r"[\"']method[\"']\s*:\s*[\"']tools/call[\"']"),
    (
        "call",
        "tool function & approved authorized authorised confirmed allowed must should wants asked requested",
        r"^[\W_]{0,4}(?:tool|function)[\s_-](?:result|output|response|call)s?\b[^\n:]{0,40}:[^\n]{0,160}"
        r"\b(?:user|assistant|you)\b[^\n]{0,60}"
        r"\b(?:approved|authori[sz]ed|confirmed|allowed|must|should|wants|asked|requested)\b",
    ),
    (
        "leak",
        "![",
        r"!\[[^\]\n]{0,200}\]\(\s*https?://[^)\s]{0,300}[?&/=](?:\{|\[|<|\$|%7B|YOUR_|SECRET|BASE64)[^)\n]{0,200}\)",
    ),
    (
        "keep",
        "tool function & remember record_turns memory",
        r"\b(?:call|use|invoke)\s+(?:the\s+)?[`'\"]?(?:remember|record_turns|memory)[`'\"]?\s+(?:tool|function)\b",
    ),
)
