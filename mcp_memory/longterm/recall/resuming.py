"""Whether a question asks to continue an earlier conversation: then recall shows the end of that one.

Such a question ("where were we?", "continue with yesterday's work") has hardly a content word that a row could
share. One pattern per language, matched anywhere, case-insensitive. They are few on purpose: search covers the rest.
"""

from __future__ import annotations

import re

__all__ = ["asks_to_go_on"]

_LANGUAGES = {
    "en": r"\bwhere (?:were we|we were|did (?:we|you) (?:leave|stop|end|get to)"
    r"|(?:we|i|you)(?:'d| had)? (?:left off|stopped))\b"
    r"|\b(?:continue|resume|go on|carry on|pick (?:it |this |things )?up|back to)\b(?: [\w']+){0,4} "
    r"(?:yesterday|last (?:time|night)|(?:last|previous|earlier) (?:session|conversation|chat)"
    r"|where (?:we|you|i) (?:were|left|stopped|ended))"
    r"|\bwhat (?:were|did|had) (?:we|you)\b(?: \w+){1,4} (?:yesterday|last (?:time|night|session))\b",
    "de": r"\bwo (?:waren|sind|haben|hatten) wir\b|\bwo wir\b(?: \w+){0,3} (?:aufgehört|stehen ?geblieben|waren)\b"
    r"|\bweiter\w*\b(?: \w+){0,4} (?:gestern|letzte[ns]? mal|letzten sitzung|aufgehört)\b"
    r"|\bwas (?:haben|hatten) wir (?:gestern|zuletzt|letztes mal)\b",
    "fr": r"\boù (?:en étions|en étiez|en était|nous en étions|on en était)\b|\blà où (?:nous|on)\b"
    r"|\b(?:repren|contin)\w*\b(?: [\w']+){0,4} (?:hier|dernière (?:fois|session|conversation))\b",
    "es": r"\bd[óo]nde (?:lo dejamos|est[áa]bamos|nos quedamos|quedamos)\b"
    r"|\b(?:sig\w+|contin\w+|retom\w+)\b(?: \w+){0,4} (?:ayer|última (?:vez|sesión)|dejamos|quedamos)\b",
    "it": r"\bdove (?:eravamo|ci eravamo|siamo rimasti|ci siamo)\b"
    r"|\b(?:riprend|continu|prosegu)\w*\b(?: [\w']+){0,4} (?:ieri|(?:l')?ultima (?:volta|sessione))\b",
    "pt": r"\bonde (?:par[áa]mos|fic[áa]mos|est[áa]vamos)\b"
    r"|\b(?:contin|retom)\w+\b(?: \w+){0,4} (?:ontem|última (?:vez|sessão)|par[áa]mos|fic[áa]mos)\b",
    "ru": r"на ч[её]м мы (?:остановились|закончили)|где мы остановились"
    r"|продолж\w+(?: \w+){0,4} (?:вчера|прошл\w+ (?:раз|сесси|разговор))",
    "zh": r"(?:继续|接着)(?:做|说|聊|讲)?(?:昨天|上次|之前)|(?:上次|昨天)(?:我们)?(?:说|聊|谈|做|讲|停|进行)到"
    r"|我们(?:说|做|聊|讲|进行)到哪",
    "ja": r"(?:前回|昨日|この前)(?:の|から)(?:続き|つづき)"
    r"|(?:どこまで|続きから)(?:やり|やっ|進|話|行|お願い|始め|再開)",
    "ko": r"어디까지 ?(?:했|하|이야기|얘기|진행)|(?:지난번|어제|저번)(?:에|의)? ?(?:이어|하던)",
}
_PATTERN = re.compile("|".join(f"(?:{pattern})" for pattern in _LANGUAGES.values()), re.IGNORECASE)
_LONGEST = 400  # characters; who writes more says what it is about


def asks_to_go_on(question: str) -> bool:
    return len(question) <= _LONGEST and _PATTERN.search(question) is not None
