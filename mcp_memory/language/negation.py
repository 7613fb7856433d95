"""Tells whether a sentence is negative: it forbids, denies or leaves out, in any of twenty-seven languages.

Two negations that stand apart cancel each other ("never … without"); those that stand together are one ("никогда не",
"ne … jamais"). Verbs that leave out (avoid, stop, skip) count. It does not read verbs that are negated inside a word,
as in Turkish and Czech; of these languages it knows words alone.
"""

from __future__ import annotations

import re

from mcp_memory.language.words import languages_of

_WORDS = """
no not never don't doesn't didn't won't can't cannot isn't aren't neither nor nothing nobody none without avoid avoids
stop stops stopped quit skip refrain omit exclude leave-out dislike dislikes hate hates refuse refuses except unless
nicht nie niemals kein keine keinen keinem keiner keines ohne nichts niemand vermeide vermeiden weglassen aufgehört
verzichte verzichten unterlasse unterlassen
pas jamais aucun aucune sans rien éviter évite évitez arrêté
nunca jamás ningún ninguna sin nada evita evitar evite
non mai nessun nessuna senza niente evitare smesso smetto
não nem sem nenhum nenhuma evite evitar parei
niet nooit geen zonder niets vermijd gestopt
nie nigdy bez żaden żadna żadnych unikaj rzuciłem rzuciłam przestałem przestałam
ne nikdy žádný žádné není nejsou nemá
не ні ніколи без жоден жодних уникай нет никогда ни нельзя избегай избегайте бросил бросила перестал перестала
inte aldrig ingen inga utan undvik ikke aldri uden ingen undgå
ei älä älkää koskaan ilman emme eivät vältä
nem ne soha nélkül kerüld nincs
nu niciodată fără nici evită
δεν μην μη ποτέ χωρίς όχι
asla hiç hiçbir olmadan değil
لا لم لن ليس بدون أبدا أبداً دون
לא אל בלי אין לעולם
نه هرگز بدون نباید نکن نده
नहीं मत कभी बिना न
không đừng chưa chớ
tidak jangan tanpa bukan
"""
_NEGATIVE = frozenset(_WORDS.split())
_BETWEEN = "without ohne sans sin senza sem zonder bez без utan uden ilman nélkül fără χωρίς بدون دون בלי बिना tanpa"
_APART = frozenset(_BETWEEN.split())
_ELSEWHERE = {"nu": {"ro"}, "sin": {"es"}, "mai": {"it", "ro"}, "non": {"it", "fr"}}
"""Words that are negative in these languages and something else in others."""
_INSIDE = re.compile(
    "不|没|沒|戒|别|別|勿|禁止|避免|無し|なし|ない|ません|ずに|禁|하지|않|말아|마세|없이|금지|안 |ไม่|อย่า|ห้าม|หลีกเลี่ยง"
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_AFTER_NE = frozenset(["pas", "jamais", "aucun", "aucune", "rien"])
"""Words that are one negation with a French "ne", however far apart: "ne me propose plus jamais"."""
_TOGETHER = 3  # words between negations that are one


def is_negative(text: str) -> bool:
    """Tell whether a sentence says that something is not so, or is not to be done."""
    words = [word.replace("’", "'") for word in _WORD.findall(text.lower())]
    count, last = 0, -_TOGETHER - 1
    for at, word in enumerate(words):
        if word == "ne" and not _AFTER_NE.isdisjoint(words[at + 1 :]):
            continue
        if word in _NEGATIVE and (word not in _ELSEWHERE or not _ELSEWHERE[word].isdisjoint(languages_of(words))):
            count += at - last > _TOGETHER or word in _APART
            last = at
    inside = 1 if _INSIDE.search(text) else 0
    return (count + inside) % 2 == 1
