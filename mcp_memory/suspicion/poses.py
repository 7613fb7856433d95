"""Text that poses as something else: as another speaker, as a tool's call or answer, as the wire between them.

Also what would make a model carry something out: a picture whose address is filled with what it knows, and orders to
send what is private somewhere.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

__all__ = ["Pose", "poses"]

Pose = Literal["role", "call", "leak"]

_ROLE = (
    r"<\|\s*/?\s*(?:im_start|im_end|im_sep|system|user|assistant|start_header_id|end_header_id|eot_id|endoftext|"
    r"begin_of_text|end_of_turn)\s*\|>",
    r"</?\s*(?:start_of_turn|end_of_turn)\s*>|\[/?INST\]|<</?SYS>>|<｜(?:User|Assistant|begin▁of▁sentence)｜>",
    r"</?\s*system(?:[-_ ](?:prompt|message|reminder|instructions?|override|note|notice|alert))\b[^<>\n]{0,80}>",
    r"(?m)^[\W_]{0,6}\[?(?:system|developer|admin(?:istrator)?|root)\]?[\W_]{0,4}"
    r"(?:message|prompt|override|notice|instructions?|update|alert)?[\W_]{0,3}:[^\n]{0,120}"
    r"\b(?:you\s+(?:are|must|will|should|may)|ignore|disregard|the\s+assistant|do\s+not|never|always|override|comply)\b",
    r"(?m)^[\W_]{0,6}(?:system|system\s+message|系统|系统消息|システム|시스템|система|sistema|système)[\W_]{0,3}[:：][^\n]{0,60}"
    r"(?:你|您|あなた|당신|вы\s|ты\s|du\s+bist|tu\s+es|vous\s+devez|debes|devi\s|você)",
    r"</\s*(?:user|human|user_query|user_message|assistant|conversation|context|document|untrusted|data|memory|memories)\s*>"
    r"\s*\n?[^\n]{0,40}(?:<\s*/?\s*(?:system|user|human|assistant)|\b(?:system|assistant|human|user)\s*:)",
)
_CALL = (
    r"</?\s*(?:antml:)?(?:function_calls|function_results|tool_calls?|tool_use|tool_results?|tool_response|tool_outputs?)\b[^<>\n]{0,120}>",
    r"<\s*(?:antml:)?(?:invoke|parameter)\s+name\s*=|<｜tool▁",
    r"[\"']type[\"']\s*:\s*[\"'](?:tool_use|tool_result|function_call|function_call_output)[\"']",
    r"[\"']method[\"']\s*:\s*[\"']tools/call[\"']",
    r"(?m)^[\W_]{0,4}(?:tool|function)[\s_-](?:result|output|response|call)s?\b[^\n:]{0,40}:[^\n]{0,160}"
    r"\b(?:user|assistant|you)\b[^\n]{0,60}\b(?:approved|authori[sz]ed|confirmed|allowed|must|should|wants|asked|requested)\b",
)
_PRIVATE = (
    r"(?:api[- _]?keys?|passwords?|credentials?|secrets?|(?:access|auth|session)[- _]?tokens?|private\s+keys?|ssh\s+keys?|\.env\b|"
    r"(?:conversation|chat)(?:\s+history|s)?|memor(?:y|ies)\b|persona\b|personal\s+(?:data|information|details)|system\s+prompt|"
    r"passw[oö]rte?r?|zugangsdaten|geheimnisse|gesprächsverlauf|mots?\s+de\s+passe|identifiants|contraseñas?|credenciales|"
    r"credenziali|senhas?|credenciais|парол\w+|секрет\w+|учётн\w+|密码|密钥|聊天记录|对话记录|凭证|パスワード|認証情報|会話履歴|비밀번호|자격\s*증명|대화\s*기록)"
)
_SENDING = (
    r"(?:\b(?:send|post\s+(?:it|them|the|this|your|all)|forward|upload|e-?mail|exfiltrate|transmit|submit|leak|deliver|sende?n?|schicke?n?|leite|"
    r"envoie[rz]?|envoyez|transmets|env[ií]a\w*|manda\w*|invia\w*|inoltra\w*|envie\w*|encaminhe|отправь\w*|перешли\w*|отправ\w+)\b|"
    r"发送|上传|转发|发到|送信|転送|アップロード|전송|보내|업로드)"
)
_PLACE = (
    r"(?:https?://|\b[\w.+-]+@[\w-]+\.\w|\b(?:the\s+following\s+(?:url|address|endpoint|server)|webhook|attacker|pastebin|"
    r"ngrok)\b)"
)
_LEAK = (
    r"!\[[^\]\n]{0,200}\]\(\s*https?://[^)\s]{0,300}[?&/=](?:\{|\[|<|\$|%7B|YOUR_|SECRET|BASE64)[^)\n]{0,200}\)",
    rf"{_SENDING}[^\n]{{0,120}}?{_PRIVATE}[^\n]{{0,120}}?{_PLACE}",
    rf"{_SENDING}[^\n]{{0,80}}?{_PLACE}[^\n]{{0,120}}?{_PRIVATE}",
    rf"{_PRIVATE}[^\n]{{0,80}}?{_PLACE}[^\n]{{0,60}}?{_SENDING}",
)
_CUES: dict[Pose, tuple[str, ...]] = {
    "role": (
        "<|", "[inst", "[/inst", "<<", "_of_turn", "｜", "</", "system", "developer", "admin", "root", "系统", "システム",
        "시스템", "система", "sistema", "système",
    ),
    "call": ("function", "tool", "invoke", "parameter", "<｜"),
    "leak": ("://", "@", "following", "webhook", "attacker", "pastebin", "ngrok"),
}  # fmt: skip
_PATTERNS: dict[Pose, tuple[str, ...]] = {"role": _ROLE, "call": _CALL, "leak": _LEAK}


def poses(text: str) -> set[Pose]:
    """Return as what a text, which is `hidden.plain`, poses."""
    folded = text.casefold()
    return {pose for pose, cues in _CUES.items() if any(cue in folded for cue in cues) and _pattern(pose).search(text)}


@cache
def _pattern(pose: Pose) -> re.Pattern[str]:
    flags = [pattern.removeprefix("(?m)") for pattern in _PATTERNS[pose]]
    return re.compile("|".join(flags), re.IGNORECASE | re.MULTILINE)
