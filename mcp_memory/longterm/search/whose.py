"""Whose words a question asks for: the asker's own ("where did I park?") or the assistant's ("what did you say?").

Told by the person of its pronouns, or by the words `user` and `assistant` themselves, in eleven languages. "Can you
remind me …" addresses the assistant but asks for nothing that it said, so requests are read over first. A question
with neither person asks for nobody's words in particular.
"""

from __future__ import annotations

import re
from functools import cache

from mcp_memory.core.types import Role
from mcp_memory.language.words import languages_of

__all__ = ["whose"]

# By language: words of the first person, of the second, and (as a pattern) requests in which "you" is only asked.
_PERSONS: dict[str, tuple[str, str, str]] = {
    "en": (
        "i i'm i've i'd i'll my me mine myself we we've our ours us",
        "you you've you'd you're your yours yourself",
        r"(?:can|could|would|will) you (?:please )?(?:remind|remember|recall|tell|help|suggest|recommend|give|provide"
        r"|share|list|summari[sz]e|explain|walk|show|find|check|look|let)"
        r"|(?:do|did|if) you (?:remember|recall|know|have)"
        r"|thank you|(?:ask|asked|tell|told|to|with|for|give|gave|show|showed|sent) you|your (?:help|advice)",
    ),
    "de": (
        "ich mich mir mein meine meinen meinem meiner meines wir uns unser unsere unseren",
        "du dich dir dein deine deinen deinem deiner",
        r"(?:kannst|könntest|weißt|erinnerst) du|(?:habe|hab|hatte) ich dir",
    ),
    "fr": (
        "je j me m moi mon ma mes nous notre nos",
        "tu te t toi ton ta tes vous votre vos",
        r"(?:peux|pourrais)[- ]tu|te souviens[- ]tu|je (?:t|te|vous)",
    ),
    "es": (
        "yo me mi mis mí conmigo nos nuestro nuestra",
        "tú te tu tus usted ti",
        r"(?:puedes|podrías|recuerdas|sabes) (?:tú )?|te (?:dije|conté|hablé)",
    ),
    "it": (
        "io mi mio mia miei mie noi nostro nostra",
        "tu ti tuo tua tuoi tue",
        r"(?:puoi|potresti|ricordi) (?:tu )?|ti ho (?:detto|raccontato)",
    ),
    "pt": (
        "eu me mim meu minha meus minhas nós nosso nossa",
        "você tu te teu tua seu sua",
        r"(?:você pode|você lembra|podes|poderia)|te (?:disse|contei|falei)",
    ),
    "nl": (
        "ik me mij mijn wij we ons onze",
        "jij je jou jouw u uw",
        r"(?:kun|kan|zou|weet) (?:je|jij|u)|(?:aan|met) (?:je|jou)",
    ),
    "ru": (
        "я меня мне мной мой моя моё мои моего моей моих мы нас нам наш наша",
        "ты тебя тебе тобой твой твоя вы вас вам ваш",
        r"(?:можешь|помнишь|знаешь) (?:ли )?ты|я (?:тебе|вам)",
    ),
}
# Chinese, Japanese and Korean write no spaces around them.
_FIRST = re.compile("我|咱|私|僕|俺|わたし|ぼく|나는|내가|나의|제가|저는|우리|나한테")
_SECOND = re.compile("你|您|あなた|君が|きみ|당신|네가|너는|너의")
_ASKED = re.compile(
    "(?:请|請|麻烦|麻煩)[你您]|[你您](?:能|可以|还记得|還記得|记得|記得|知道)|(?:跟|和|对|對|向|告诉|告訴|告诉过)[你您]"
)
_USER = re.compile(r"\b(?:the )?user(?:'s)?\b|用户|用戶", re.IGNORECASE)
_ASSISTANT = re.compile(r"\b(?:the )?assistant(?:'s)?\b|助手", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def whose(question: str) -> Role | None:
    """Return the role whose turns the question asks for, or None."""
    user, assistant = bool(_USER.search(question)), bool(_ASSISTANT.search(question))
    if user != assistant:
        return "user" if user else "assistant"
    if _SECOND.search(_ASKED.sub("", question)):
        return "assistant"
    if _FIRST.search(question):
        return "user"
    return _by_pronouns(question.replace("’", "'"))


def _by_pronouns(question: str) -> Role | None:
    words = [word.lower() for word in _WORD.findall(question)]
    for language in languages_of(words):
        if language not in _PERSONS:
            continue
        first, second, requests = _patterns(language)
        if second & {word.lower() for word in _WORD.findall(requests.sub(" ", question))}:
            return "assistant"
        if first & set(words):
            return "user"
    return None


@cache
def _patterns(language: str) -> tuple[frozenset[str], frozenset[str], re.Pattern[str]]:
    first, second, requests = _PERSONS[language]
    return frozenset(first.split()), frozenset(second.split()), re.compile(rf"\b(?:{requests})\b", re.IGNORECASE)
