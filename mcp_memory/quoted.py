"""What in a user's text is somebody else's words: quotations, code, forwarded mails, what follows "here is the mail:".

It errs towards the user: a quotation of four words or fewer is a name or a title, one that they ask to remember is
theirs, and a text that is pasted without any sign of it is taken for their own. Text after a forwarded mail counts as a
part of it, for nothing tells where a mail ends. Sixteen languages; pure text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

__all__ = ["FILL", "own_part", "quoted_spans"]

FILL = "\u00a4"
"""What stands for a character of others in `own_part`."""

_FEWEST_WORDS = 5  # of a quotation
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff]")

_BLOCKS = r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|^[ \t]*>[^\n]*"
_INLINE = (
    r"\"[^\"\n]{1,1000}\"|“[^”]{1,2000}”|„[^“”]{1,2000}[“”]|«[^»]{1,2000}»|»[^«]{1,2000}«"
    r"|「[^」]{1,2000}」|『[^』]{1,2000}』"
)
_TO_KEEP = (
    r"(?:remember|note|keep in mind|save|rules?|merk\w*|notier\w*|regel[ns]?|souviens|retiens|retenez|note[zr]?|règles?"
    r"|recuerda|anota|reglas?|ricorda\w*|annota|regol[ae]|lembr\w+|anote|regras?|onthoud|zapamiętaj|zasad[ay]|запомни"
    r"|правил[оа]|hatırla|kural|记住|记下|规则|覚えて|ルール|기억|규칙|تذكر|قاعدة)[^\n\"“„«»「『]{0,40}$"
)
_SENDER = "From|Von|De|Da|Van|Od|От|Kimden|Från|Fra|Gönderen|发件人|寄件者|差出人|보낸 ?사람|من"
_HEADER = (
    "Subject|Betreff|Objet|Asunto|Oggetto|Assunto|Onderwerp|Temat|Тема|Konu|Ämne|Emne|主题|主旨|件名|제목|الموضوع"
    "|To|An|À|Para|Aan|Do|Кому|Kime|Till|Til|收件人|宛先|받는 ?사람|إلى"
    "|Date|Datum|Fecha|Data|Дата|Tarih|Dato|日期|日付|날짜"
    "|Sent|Gesendet|Envoyé|Enviado|Inviato|Verzonden"
)
_MESSAGE = (
    r"messages?|nachrichten?|mensajes?|messaggi[o]?|mensage(?:m|ns)|bericht(?:en)?|wiadomo\w+|сообщени\w+|письм\w+|ileti\w*"
    r"|e-?mails?|mails?|courriels?|correos?|epostalar\w*|letters?|brief\w*|lettres?|cartas?|letter[ae]"
    r"|articles?|artikel|artículos?|articol[oi]|artigos?|pages?|seite|página|pagina|strona|страниц\w+|sayfa\w*|posts?"
    r"|tickets?|readme|documents?|dokument\w*|documentos?|text[eos]?|texto?|testo|tekst|текст|metin|websites?"
    r"|reviews?|chats?"
)
_DENSE_MESSAGE = (
    "邮件|郵件|信|消息|文章|网页|網頁|文档|メール|手紙|記事|ページ|메일|편지|글|문서|페이지|رسالة|بريد|مقال|صفحة|نص"
)
_GIVEN = (
    r"here(?:'s|’s| is| are)|got|get|received|receive|sent|send|wrote|writes|says?|said|reads?|forward\w*|pasted?"
    r"|following|below"
    r"|hier|bekommen|erhalten|schrieb|schreibt|geschickt|folgende\w*|steht|voici|reçu|écrit|dit|suivant\w*|aquí|recib\w+"
    r"|escrib\w+|dice|siguiente|ecco|ricevuto|scritto|seguente|aqui|recebi\w*|escreve\w*|diz|seguinte|kreeg|ontvangen|schreef"
    r"|stuurde|volgende|oto|dostał\w*|napisał\w*|otrzymał\w*|вот|получил\w*|написал\w*|прислал\w*|пишет|işte|aldım|geldi|yazdı\w*"
)
_DENSE_GIVEN = "这是|這是|收到|写道|说|如下|以下|届い|もらっ|書い|次の|받은|받았|왔|다음|هذه|هذا|وصل|تلقيت|كتب"


@cache
def _marks() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Compiled when a text first needs them."""
    to_the_end = (
        rf"^[ \t]*(?:{_SENDER})[ ]*[:：][ ]*\S[^\n]*\n(?:[^\n]*\n){{0,4}}?[ \t]*(?:{_HEADER})[ ]*[:：]",
        rf"^[ \t]*-{{2,}}+[^\n]{{0,40}}(?:{_MESSAGE}|{_DENSE_MESSAGE})[^\n]{{0,20}}-{{2,}}[ \t]*$",
        r"^[ \t]*begin forwarded message",
        r"^[ \t]*(?:on|am|le|el|il|em|op|w dniu)\b[^\n]{5,100}(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu"
        r"|schreef|napisał\w*)[ ]*:[ \t]*$",
        rf"(?:(?<=[.!?。！？])|^)(?=[^\n:：.!?。！？]{{0,160}}[:：])(?=[^\n:：]*(?:\b(?:{_MESSAGE})\b|{_DENSE_MESSAGE}))"
        rf"(?=[^\n:：]*(?:\b(?:{_GIVEN})\b|{_DENSE_GIVEN}))[^\n:：]*[:：](?=\s*\S)",
    )
    flags = re.IGNORECASE | re.MULTILINE
    return (
        re.compile(_BLOCKS, re.DOTALL | re.MULTILINE),
        re.compile(_INLINE),
        re.compile(_TO_KEEP, flags),
        re.compile("|".join(to_the_end), flags),
    )


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Return where others speak in a text, in order; places may touch or overlap."""
    return sorted(_spans(text))


def own_part(text: str) -> str:
    """Return the text, as long as it was, with `FILL` for each character that is not the author's but for line ends."""
    shown = list(text)
    for start, end in _spans(text):
        for place in range(start, end):
            if shown[place] != "\n":
                shown[place] = FILL
    return "".join(shown)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    blocks, inline, to_keep, to_the_end = _marks()
    for found in blocks.finditer(text):
        yield found.span()
    for found in inline.finditer(text):
        if _is_speech(found[0][1:-1]) and not to_keep.search(text, max(0, found.start() - 80), found.start()):
            yield found.span()
    forwarded = to_the_end.search(text)
    if forwarded is not None:
        yield forwarded.end() if forwarded[0].rstrip().endswith((":", "：")) else forwarded.start(), len(text)


def _is_speech(words: str) -> bool:
    """Tell whether a quotation says something; what is shorter is a name, a title or a word."""
    return len(words.split()) + len(_DENSE.findall(words)) // 2 >= _FEWEST_WORDS
