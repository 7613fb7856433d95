"""Orders to whatever model reads a text, in ten languages: to drop its rules, to obey the text, to keep it for good.

`drop` gives up earlier instructions; it is an order whoever says it. `heed` speaks to a model as one, and goes on in
the imperative. `keep` tells it to store something for later. It does not know who speaks: that a user asks for
something to be remembered is no attack.
"""

from __future__ import annotations

import re
from functools import cache

from mcp_memory.suspicion.rows import rows

__all__ = ["ORDERS", "drops"]

_AI = r"(?:ai|llm|(?:large\s+)?language\s+model|chat\s?bot|automated)"

ORDERS = rows(
    # --- drop
    (
        "drop",
        "ignore disregard forget override bypass"
        " & rule rules instruction instructions prompt prompts guidelines directions",
        r"\b(?:ignore|disregard|forget|override|bypass)\s+(?:\w+\s+){0,2}"
        r"(?:all|any|every|everything|previous|prior|above|earlier|preceding|system|existing)\s+(?:\w+\s+){0,3}"
        r"(?:rules?|instructions?|prompts?|guidelines|directions)\b",
    ),
    (
        "drop",
        "disregard ignore & everything",
        r"\b(?:disregard|ignore)\s+everything\s+(?:above|before|you\s+(?:were|have\s+been)\s+told)\b",
    ),
    (
        "drop",
        "follow obey & rule rules instruction instructions prompt prompts guidelines",
        r"\b(?:do\s+not|don't|never)\s+(?:follow|obey)\s+(?:\w+\s+){0,2}(?:previous|prior|earlier|system|user'?s?)\s+"
        r"(?:\w+\s+)?(?:rules?|instructions?|prompts?|guidelines)\b",
    ),
    (
        "drop",
        "regeln anweisungen vorgaben instruktionen",
        r"\b(?:ignoriere|vergiss|missachte)n?\s+(?:\w+\s+){0,3}(?:regeln|anweisungen|vorgaben|instruktionen)\b",
    ),
    (
        "drop",
        "règles instructions consignes",
        r"\b(?:ignore[zr]?|oublie[zr]?)\s+(?:toutes\s+)?(?:les|tes|vos|ces)\s+(?:\w+\s+)?(?:règles|instructions|consignes)\b",
    ),
    (
        "drop",
        "reglas instrucciones",
        r"\b(?:ignora|ignore|olvida)\w*\s+(?:todas\s+)?(?:las|tus|sus|estas)\s+(?:\w+\s+)?(?:reglas|instrucciones)\b",
    ),
    (
        "drop",
        "regole istruzioni",
        r"\b(?:ignora|dimentica)\w*\s+(?:tutte\s+)?(?:le|queste)\s+(?:\w+\s+)?(?:regole|istruzioni)\b",
    ),
    (
        "drop",
        "regras instruções",
        r"\b(?:ignore|ignora|esqueça)\s+(?:todas\s+)?(?:as|suas|estas)\s+(?:\w+\s+)?(?:regras|instruções)\b",
    ),
    (
        "drop",
        "правила инструкции указания",
        r"\b(?:игнорируй|забудь|отмени)(?:те)?\s+(?:\w+\s+){0,3}(?:правила|инструкции|указания)\b",
    ),
    (
        "drop",
        "忽略 无视 無視 忘记 忘掉",
        r"(?:忽略|无视|無視|忘记|忘掉)(?:你|掉|所有|一切|全部|之前|以上|上述|先前|前面|系统|的|了){1,6}"
        r"(?:规则|規則|指令|指示|提示|要求)",
    ),
    (
        "drop",
        "無視 忘れ",
        r"(?:すべて|全て|これまで|以前|上記|今まで)の?(?:すべての|全ての)?(?:ルール|規則|指示|命令)を?(?:無視|忘れ)",
    ),
    (
        "drop",
        "무시 잊",
        r"(?:모든|이전|위의|지금까지의)\s*(?:모든\s*)?(?:규칙|지시|명령|지침)(?:사항)?[을를]?\s*(?:무시|잊)",
    ),
    # --- heed
    (
        "heed",
        "ai llm language chatbot chat automated & attention note message notice instruction instructions important",
        r"\b(?:attention|note|message|notice|instructions?|important)\s*,?\s*(?:to|for|:)?\s*(?:all\s+|any\s+|the\s+)?"
        rf"{_AI}\s*(?:assistants?|agents?|models?|systems?|readers?)?\s*[:,–—-]",
    ),
    (
        "heed",
        "ai llm model automated & if",
        rf"\bif\s+you(?:'re|\s+are)\s+(?:an?\s+)?{_AI}\b[^.\n]{{0,80}}\b(?:must|should|please|ignore|do\s+not|never|always"
        r"|reply|respond|tell|say|send|include|add)\b",
    ),
    (
        "heed",
        "ai llm & reading processing summarizing summarising reads",
        r"\b(?:ai|llm)\s+(?:assistants?|agents?|models?)\s+(?:reading|processing|summari[sz]ing|that\s+reads?)\b"
        r"[^.\n]{0,60}\b(?:must|should|shall|are\s+(?:required|instructed))\b",
    ),
    (
        "heed",
        "instruction instructions & new updated real actual",
        r"\b(?:new|updated|real|actual)\s+(?:system\s+)?instructions?\s+"
        r"(?:for\s+(?:the\s+)?(?:ai|assistant|agent|model)|follow)\b",
    ),
    (
        "heed",
        "dan developer jailbroken unrestricted & now",
        r"\byou\s+are\s+now\s+(?:in\s+)?(?:dan\b|developer\s+mode|jailbroken|unrestricted|an?\s+unrestricted)",
    ),
    (
        "heed",
        "prompt & reveal print repeat output show",
        r"\b(?:reveal|print|repeat|output|show)\s+(?:me\s+)?(?:your|the)\s+(?:full\s+|entire\s+|hidden\s+)?system\s+prompt\b",
    ),
    (
        "heed",
        "ki llm sprachmodell sprachmodelle ki-assistenten",
        r"\b(?:hinweis|achtung|anweisung|nachricht)\s+(?:an|für)\s+(?:alle\s+|die\s+|jede\s+)?(?:ki|llm|sprachmodell)"
        r"|\bwenn\s+du\s+(?:eine?\s+)?(?:ki|llm|sprachmodell)\b[^.\n]{0,80}\b(?:musst|sollst|bitte|ignoriere|antworte|sende)\b",
    ),
    (
        "heed",
        "ia langage",
        r"\b(?:note|message|instructions?|attention)\s+(?:à|aux|pour|destinée?s?\s+à)\s+(?:l'|les\s+|toute\s+)?"
        r"(?:ia|assistants?\s+ia|modèles?\s+de\s+langage)\b"
        r"|\bsi\s+(?:tu\s+es|vous\s+êtes)\s+une?\s+(?:ia|modèle\s+de\s+langage)\b[^.\n]{0,80}\b(?:dois|devez|veuillez|réponds|envoie)",
    ),
    (
        "heed",
        "ia lenguaje",
        r"\b(?:nota|mensaje|instrucciones|atención|instrucción)\s+(?:para|a|al)\s+(?:el\s+|la\s+|los\s+|las\s+)?"
        r"(?:ia\b|asistentes?\s+de\s+ia|modelos?\s+de\s+lenguaje)"
        r"|\bsi\s+eres\s+una?\s+(?:ia|modelo\s+de\s+lenguaje)\b[^.\n]{0,80}\b(?:debes|responde|envía|ignora)",
    ),
    (
        "heed",
        "ia ai linguistico linguistici",
        r"\b(?:nota|messaggio|istruzioni|attenzione)\s+(?:per|a|all')\s*(?:la\s+|le\s+|gli\s+)?"
        r"(?:ia\b|ai\b|assistenti?\s+(?:ia|ai)|modelli?\s+linguistic)"
        r"|\bse\s+sei\s+un(?:'|a\s+)?\s?(?:ia|ai|modello\s+linguistico)\b[^.\n]{0,80}\b(?:devi|rispondi|invia|ignora)",
    ),
    (
        "heed",
        "ia linguagem",
        r"\b(?:nota|mensagem|instruções|atenção)\s+(?:para|a|ao|à)\s+(?:o\s+|a\s+|os\s+|as\s+)?"
        r"(?:ia\b|assistentes?\s+de\s+ia|modelos?\s+de\s+linguagem)"
        r"|\bse\s+você\s+é\s+uma?\s+(?:ia|modelo\s+de\s+linguagem)\b[^.\n]{0,80}\b(?:deve|responda|envie|ignore)",
    ),
    (
        "heed",
        "ии интеллекта интеллект модель моделей",
        r"\b(?:внимание|сообщение|инструкци[яи]|указани[ея])\s*,?\s*(?:для\s+)?(?:всех\s+)?"
        r"(?:ии|искусственного\s+интеллекта|языков\w+\s+модел\w+)\b"
        r"|\bесли\s+(?:ты|вы)\s*[—–-]?\s*(?:ии|языковая\s+модель|искусственный\s+интеллект)\b"
        r"[^.\n]{0,80}\b(?:должен|должна|должны|ответь|отправь)",
    ),
    (
        "heed",
        "人工智能 语言模型 助手 代理 ai & 致 给 提醒 告知 如果",
        r"(?:致|给|提醒|告知)(?:所有|任何|各位)?(?:的)?(?:AI|人工智能|大?语言模型|智能)(?:助手|代理|模型|系统)?[:：,，]"
        r"|如果你是(?:一个|一名)?(?:AI|人工智能|大?语言模型)[^。\n]{0,60}(?:必须|应该|请|回复|发送|忽略)",
    ),
    (
        "heed",
        "への へ 向け あなたが",
        r"(?:AI|人工知能|言語モデル)(?:アシスタント|エージェント|モデル)?(?:への|へ|向けの?)(?:指示|注意|メッセージ|命令|お知らせ)"
        r"|あなたが(?:AI|人工知能|言語モデル)[^。\n]{0,60}(?:してください|しなければ|無視|返信|送信)",
    ),
    (
        "heed",
        "에게 위한 대한 당신이 네가",
        r"(?:AI|인공지능|언어\s*모델)\s*(?:어시스턴트|비서|에이전트|모델)?(?:에게|를\s*위한|에\s*대한)\s*(?:지시|지침|알림|메시지|명령)"
        r"|(?:당신이|네가)\s*(?:AI|인공지능|언어\s*모델)[^.\n]{0,60}(?:하십시오|하세요|해야|무시|답하|보내)",
    ),
    # --- keep
    (
        "keep",
        "memory memories & save store add write commit record put keep persist",
        r"\b(?:save|store|add|write|commit|record|put|keep|persist)\s+(?:\w+\s+){0,4}?(?:in|to|into)\s+"
        r"(?:your|the\s+(?:assistant|agent|ai|model)'s)\s+(?:(?:long[- ]term|permanent|persistent)\s+)?"
        r"memor(?:y|ies)\b",
    ),
    (
        "keep",
        "update modify rewrite edit & memory memories persona prompt",
        r"\b(?:update|modify|rewrite|edit)\s+(?:your|the\s+(?:assistant|agent|ai|model)'s)\s+(?:long[- ]term\s+)?"
        r"(?:memor(?:y|ies)|persona|system\s+prompt)\b",
    ),
    (
        "keep",
        "remember & permanently forever future all every",
        r"\bremember\s+(?:\S+\s+){0,5}?(?:permanently|forever|in\s+all\s+future\s+(?:conversations|sessions|chats)|"
        r"for\s+(?:all|every)\s+(?:future|later)\s+(?:conversations?|sessions?|chats?|use))\b",
    ),
    (
        "keep",
        "future & conversation conversations session sessions chat chats interactions answers responses",
        r"\b(?:in|for)\s+(?:all|every|any)\s+future\s+(?:conversations?|sessions?|chats?|interactions?|answers?|responses?)"
        r"\s*,?\s+(?:\w+\s+){0,4}?(?:always|never|you\s+(?:must|should|will)|recommend|say|tell|use|send|include|mention)\b",
    ),
    (
        "keep",
        "tool function & remember record_turns memory",
        r"\b(?:call|use|invoke)\s+(?:the\s+)?[`'\"]?(?:remember|record_turns|memory)[`'\"]?\s+(?:tool|function)\b",
    ),
    (
        "keep",
        "user & always henceforth now & when whenever",
        r"\b(?:always|from\s+now\s+on|henceforth)\b[^.\n]{0,40}\bwhen(?:ever)?\s+(?:the\s+)?user\s+(?:asks|mentions|wants)\b",
    ),
    (
        "keep",
        "gedächtnis langzeitgedächtnis speicher dauerhaft immer künftigen zukünftigen"
        " & speichere speicher speichern merke merk",
        r"\bspeicher\w*\s+(?:\w+\s+){0,5}?(?:in|im)\s+(?:deine[mnr]?\s+)?(?:langzeit)?(?:gedächtnis|speicher)\b"
        r"|\b(?:merke?|merk)\s+dir\s+(?:\w+\s+){0,4}?(?:dauerhaft|für\s+immer|für\s+alle\s+(?:künftigen|zukünftigen))\b",
    ),
    (
        "keep",
        "mémoire toujours conversations sessions",
        r"\b(?:enregistre|sauvegarde|ajoute|stocke|mémorise|retiens)[rz]?\s+(?:\S+\s+){0,5}?(?:dans\s+(?:ta|votre)\s+mémoire"
        r"|pour\s+toujours|pour\s+toutes\s+les\s+(?:futures|prochaines)\s+(?:conversations|sessions))",
    ),
    (
        "keep",
        "memoria siempre conversaciones",
        r"\b(?:guarda|almacena|añade|graba|recuerda|memoriza)\w*\s+(?:\S+\s+){0,5}?(?:en\s+(?:tu|su)\s+memoria|para\s+siempre|"
        r"en\s+todas\s+las\s+(?:futuras\s+conversaciones|conversaciones\s+futuras))",
    ),
    (
        "keep",
        "memoria sempre conversazioni",
        r"\b(?:salva|memorizza|aggiungi|conserva|ricorda)\w*\s+(?:\S+\s+){0,5}?(?:nella\s+(?:tua|sua)\s+memoria|per\s+sempre|"
        r"in\s+tutte\s+le\s+(?:future\s+conversazioni|conversazioni\s+future))",
    ),
    (
        "keep",
        "memória sempre conversas",
        r"\b(?:salve|guarde|armazene|adicione|memorize|lembre|grave)\w*\s+(?:\S+\s+){0,5}?(?:na\s+(?:sua|tua)\s+memória"
        r"|para\s+sempre|em\s+todas\s+as\s+(?:futuras\s+conversas|conversas\s+futuras))",
    ),
    (
        "keep",
        "память навсегда будущих",
        r"\b(?:сохрани|запиши|добавь|запомни)(?:те)?\s+(?:\S+\s+){0,5}?(?:в\s+(?:свою\s+|твою\s+|долговременную\s+)?память"
        r"|навсегда|для\s+всех\s+будущих)",
    ),
    (
        "keep",
        "记忆 内存 记住 以后 今后 未来",
        r"(?:保存|存储|写入|记录|添加|存入|记)(?:到|进|在|入)?(?:你的|您的)?(?:长期|永久)?(?:记忆|内存)(?:中|里|库)"
        r"|(?:永远|永久|请永远)(?:地)?记住|在(?:以后|今后|未来)(?:的)?(?:所有|每次|任何)(?:对话|会话|回答)(?:中|里)?",
    ),
    (
        "keep",
        "記憶 メモリ 今後",
        r"(?:あなたの)?(?:長期)?(?:記憶|メモリー?)(?:に|へ)(?:永久に)?(?:保存|記録|追加|書き込)(?:し|ん|みなさい|せよ)"
        r"|今後の?すべての(?:会話|対話|回答)",
    ),
    (
        "keep",
        "기억 메모리 앞으로",
        r"(?:당신의\s*|너의\s*)?(?:장기\s*)?(?:기억|메모리)에\s*(?:영구히\s*)?(?:저장|추가|기록)(?:하|해)"
        r"|앞으로의?\s*모든\s*(?:대화|세션|답변)",
    ),
)


@cache
def drops() -> re.Pattern[str]:
    """Return the pattern of the orders to give up other instructions, for those who want to know where one stands."""
    return re.compile("|".join(row.source for row in ORDERS if row.name == "drop"), re.IGNORECASE)
