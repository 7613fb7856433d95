"""What the user agrees to: "Shall I always answer in French?" and "Yes, please" state a rule together.

Only an offer of what is done for good ("always", "from now on") counts, and only an answer that agrees and says nothing
else, in the languages of `l1_atoms.phrases`; "yes, but …" does not.
"""

from __future__ import annotations

import re
from functools import cache

from mcp_memory.language.quoted import FILL, own_part
from mcp_memory.language.standing_rules import is_question, sentences
from mcp_memory.longterm.l1_atoms.phrases import bare, phrases_of

__all__ = ["accepted"]

_LONGEST = 80  # characters of an answer
_READ = 2_000  # characters at the end of an offer
_FEW_WORDS = 4  # of "Is that all right?", which asks about the sentence before
_NOES = """
no nope nah not nein nö nicht non pas não nao nem nej ikke nee niet нет не ні nie hayır yok 不 不是 不要 不用
不用了 不了 免了 没有 いいえ いや 結構です 아니 아니요 아뇨 لا όχι לא नहीं không tidak ei nu
"""
_POLITELY = re.compile(
    r"\b(?:please(?: do)?|por favor|graag|alsjeblieft|alstublieft|lütfen|proszę|s'il (?:te|vous) plaît|per favore"
    r"|do (?:that|so|it)|tack"
    r"|takk|tak|gerne?|gute idee|good idea|great idea|avec plaisir|bonne idée|buena idea|con gusto|volentieri"
    r"|buon'idea|boa ideia|goed idee|god idé|dobry pomysł|хорошая идея)\b|부탁(?:해요|드려요|합니다)|お願いします",
    re.IGNORECASE,
)
_FOR_GOOD = re.compile(
    r"\b(?:always|never|every|each|from now on|in (?:the )?future|whenever|by default|immer|nie|niemals|jede[nmrs]?"
    r"|künftig"
    r"|ab jetzt|in zukunft|toujours|jamais|chaque|désormais|à l'avenir|siempre|nunca|cada|a partir de ahora|sempre"
    r"|mai|ogni"
    r"|d'ora in poi|cada|a partir de agora|altijd|nooit|voortaan|elke|alltid|aldrig|altid|всегда|никогда|кажд\w+"
    r"|впредь|zawsze"
    r"|nigdy|każd\w+|her zaman|hep|asla|bundan sonra)\b|总是|總是|以后|以後|每次|永远|いつも|必ず|今後|毎回|항상"
    r"|앞으로|매번",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^\W*(?:(?:ok|okay|so|and|also|sure|got it|alright)[,.]? )*"
    r"(?:(?:shall|should|may|can|could|will|would) (?:i|we)|(?:do|would) you (?:want|like|prefer) (?:me to|that i|if i)"
    r"|(?:soll|sollte|darf|kann) ich|(?:möchtest|willst) du,? dass ich|möchten sie,? dass ich|(?:dois|puis)-je"
    r"|(?:veux-tu|voulez-vous|souhaites-tu|souhaitez-vous) que je|quieres que(?: yo)?|quiere que(?: yo)?|debo|puedo"
    r"|devo|posso|vuoi che(?: io)?|vuole che(?: io)?|(?:você )?quer que(?: eu)?|zal ik|wil je dat ik|ska jag|skal jeg"
    r"|(?:мне|должен ли я)|хотите, чтобы я|хочешь, чтобы я|czy mam|chcesz,? żebym)\b[ ,]*",
    re.IGNORECASE,
)
_OFFERS = re.compile(r"^\W*(?:i|we) could\b.*(?:\bif you (?:want|like|wish|prefer)|\bif that helps)\W*$", re.IGNORECASE)
"""An offer that asks nothing: "I could always …, if you want." """
_PROMISES = re.compile(
    r"^\W*(?:i(?:'ll| will|'d| could)|ich werde|je vais|voy a|vou|ik zal|я буду)\b[ ,]*", re.IGNORECASE
)


def accepted(offer: str, answer: str) -> str | None:
    """Return what an answer agrees to, as an order; None where it agrees to nothing.

    An offer is the question that ends the turn before, where it is about what is done for good.
    """
    if not _agrees(answer):
        return None
    own = own_part(offer[-_READ:]).replace(FILL, " ")
    said = [own[start:end].strip() for start, end in sentences(own)]
    if not said or not (is_question(said[-1].lower()) or _OFFERS.match(said[-1])):
        return None
    asked = said[-1]
    if len(asked.split()) <= _FEW_WORDS and len(said) > 1 and asked < "\u2e80":
        asked = said[-2]
    if not _FOR_GOOD.search(asked):
        return None
    return re.sub(r"[?？]\W*$", ".", _PROMISES.sub("", _ASKS.sub("", asked)))


def _agrees(answer: str) -> bool:
    if len(answer) > _LONGEST:
        return False
    rest = _POLITELY.sub("", answer)
    kinds = phrases_of(answer) or phrases_of(rest)
    agrees = bool(kinds and kinds & {"assent", "agreement"}) or (rest != answer and not any(map(str.isalnum, rest)))
    return agrees and _noes().isdisjoint(bare(answer).split())


@cache
def _noes() -> frozenset[str]:
    return frozenset(map(bare, _NOES.split()))
