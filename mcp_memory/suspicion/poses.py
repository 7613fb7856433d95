"""Text that poses as something else: as another speaker, as a tool's call or answer, as the wire between them.

Also what would make a model carry something out: a picture whose address is filled with what it knows, and orders to
send what is private somewhere.
"""

from __future__ import annotations

from mcp_memory.suspicion.rows import rows

__all__ = ["POSES"]

_PRIVATE = (
    r"(?:api[- _]?keys?|passwords?|credentials?|secrets?|(?:access|auth|session)[- _]?tokens?|private\s+keys?"
    r"|ssh\s+keys?|\.env\b|(?:conversation|chat)(?:\s+history|s)?|memor(?:y|ies)\b|persona\b|personal\s+(?:data|information|details)"
    r"|system\s+prompt|passw[oö]rte?r?|zugangsdaten|geheimnisse|gesprächsverlauf|mots?\s+de\s+passe|identifiants"
    r"|contraseñas?|credenciales|credenziali|senhas?|credenciais|парол\w+|секрет\w+|密码|密钥|聊天记录|对话记录|凭证"
    r"|パスワード|認証情報|会話履歴|비밀번호|자격\s*증명|대화\s*기록)"
)
_SENDING = (
    r"(?:\b(?:send|post\s+(?:it|them|the|this|your|all)|forward|upload|e-?mail|exfiltrate|transmit|submit|leak|deliver"
    r"|sende|schicke|leite|envoie[rz]?|transmets|env[ií]a|manda|invia|inoltra|envie|encaminhe|отправь\w*|перешли\w*)\b"
    r"|发送|上传|转发|发到|送信|転送|アップロード|전송|보내|업로드)"
)
_SENDING_WORDS = (
    "send post forward upload email mail exfiltrate transmit submit leak deliver sende schicke leite envoie envoyez"
    " envoyer transmets envia envía manda invia inoltra envie encaminhe отправь отправьте перешли перешлите"
    " 发送 上传 转发 发到 送信 転送 アップロード 전송 보내 업로드"
)
_PLACE = (
    r"(?:https?://|\b[\w.+-]+@[\w-]+\.\w|\b(?:the\s+following\s+(?:url|address|endpoint|server)|webhook|attacker|pastebin"
    r"|ngrok)\b)"
)
_PLACE_WORDS = "http https com net org example io dev webhook attacker pastebin ngrok following"

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
        "system developer admin administrator root",
        r"^[\W_]{0,6}\[?(?:system|developer|admin(?:istrator)?|root)\]?[\W_]{0,4}"
        r"(?:message|prompt|override|notice|instructions?|update|alert)?[\W_]{0,3}:[^\n]{0,120}"
        r"\b(?:you\s+(?:are|must|will|should|may)|ignore|disregard|the\s+assistant|do\s+not|never|always|override|comply)\b",
    ),
    (
        "role",
        "system 系统 システム 시스템 система sistema système & 你 您 あなた 당신 вы ты du tu vous debes devi você",
        r"^[\W_]{0,6}(?:system|system\s+message|系统|系统消息|システム|시스템|система|sistema|système)[\W_]{0,3}[:：][^\n]{0,60}"
        r"(?:你|您|あなた|당신|вы\s|ты\s|du\s+bist|tu\s+es|vous\s+devez|debes|devi\s|você)",
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
        "leak",
        f"{_SENDING_WORDS} & {_PLACE_WORDS}",
        rf"{_SENDING}[^\n]{{0,120}}?{_PRIVATE}[^\n]{{0,120}}?{_PLACE}"
        rf"|{_SENDING}[^\n]{{0,80}}?{_PLACE}[^\n]{{0,120}}?{_PRIVATE}",
    ),
    (
        "leak",
        f"{_SENDING_WORDS} & {_PLACE_WORDS} & 把 を 을 를",  # languages that send at the end
        rf"(?:{_PRIVATE}[^\n]{{0,80}}?{_PLACE}|{_PLACE}[^\n]{{0,80}}?{_PRIVATE})[^\n]{{0,60}}?{_SENDING}",
    ),
)
