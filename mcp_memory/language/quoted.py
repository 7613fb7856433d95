"""What in a user's text is somebody else's words: quotations, code, mails, what follows "she wrote:" or "translate:".

A mail is known by its headers, by a formal salutation, or by a salutation or a colon before a signature; one to an
assistant is the user's. A text that is to be translated, summarised or corrected is nobody's word, up to the end of its
quotation marks where it has some.

It errs towards the user: a quotation of four words or fewer is a name or a title, one that they ask to remember is
theirs, and a text that is pasted without any sign of it is taken for their own. Text after a mail counts as a part of
it, for nothing tells where a mail ends. Sixteen languages; pure text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

FILL = "\u00a4"
"""What stands for a character of others in `own_part`."""

_FEWEST_WORDS = 5  # of a quotation
_SPACE = re.compile(r"\s*")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff]")

_BLOCKS = r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|^[ \t]*>[^\n]*"
_INLINE = (
    r"\"[^\"\n]{1,1000}\"|“[^”]{1,2000}”|„[^“”]{1,2000}[“”]|«[^»]{1,2000}»|»[^«]{1,2000}«"
    r"|「[^」]{1,2000}」|『[^』]{1,2000}』"
)
_SINGLE = (  # of other places a quotation in these may be a title
    r"(?<!\w)‘[^\n]{1,1000}?’(?!\w)|‚[^‘\n]{1,1000}‘|(?<![\w'])'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w)){1,1000}'(?![\w'])"
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
    r"messages?|nachrichten?|mensajes?|messaggi[o]?|mensage(?:m|ns)|bericht(?:en)?|wiadomo\w+|сообщени\w+|письм\w+"
    r"|ileti\w*"
    r"|e-?mails?|mails?|courriels?|correos?|epostalar\w*|letters?|brief\w*|lettres?|cartas?|letter[ae]"
    r"|articles?|artikel|artículos?|articol[oi]|artigos?|pages?|seite|página|pagina|strona|страниц\w+|sayfa\w*|posts?"
    r"|tickets?|readme|documents?|dokument\w*|documentos?|text[eos]?|texto?|testo|tekst|текст|metin|websites?"
    r"|reviews?|chats?|tweets?|prompts?|polic(?:y|ies)|transcripts?|manuals?"
)
_DENSE_MESSAGE = (
    "邮件|郵件|信|消息|文章|网页|網頁|文档|メール|手紙|記事|ページ|메일|편지|글|문서|페이지|رسالة|بريد|مقال|صفحة|نص"
)
_GIVEN = (
    r"here(?:'s|’s| is| are)|got|get|received|receive|sent|send|wrote|writes|says?|said|reads?|forward\w*|pasted?"
    r"|following|below|found|saw"
    r"|hier|bekommen|erhalten|schrieb|schreibt|geschickt|folgende\w*|steht|voici|reçu|écrit|dit|suivant\w*|aquí"
    r"|recib\w+"
    r"|escrib\w+|dice|siguiente|ecco|ricevuto|scritto|seguente|aqui|recebi\w*|escreve\w*|diz|seguinte|kreeg|ontvangen"
    r"|schreef"
    r"|stuurde|volgende|oto|dostał\w*|napisał\w*|otrzymał\w*|вот|получил\w*|написал\w*|прислал\w*|пишет|işte|aldım"
    r"|geldi|yazdı\w*"
)
_DENSE_GIVEN = "这是|這是|收到|写道|说|如下|以下|届い|もらっ|書い|次の|받은|받았|왔|다음|هذه|هذا|وصل|تلقيت|كتب"

# "She wrote:", not "I wrote:": verbs of others, in clauses without a first or second person.
_SAYS = (
    r"says?|said|writes|wrote|texted|replied|answered|posted|told (?:me|us)|reads|claims|claimed|states|shouted"
    r"|whispered"
    r"|sagt|sagte|schrieb|schreibt|meint|meinte|antwortete|steht|gesagt|geschrieben|geantwortet|dit|disait|écrit|répond"
    r"|répondu|dice|dijo|escribe|escribió|respondió|dicho|escrito|disse|scrive|scrisse|detto|scritto|diz|escreve"
    r"|escreveu"
    r"|respondeu|zegt|zei|schrijft|schreef|gezegd|geschreven|говорит|сказала?|пишет|написала?|ответила?|mówi"
    r"|powiedziała?"
    r"|pisze|napisała?|dedi|diyor|yazdı|yazmış|säger|sa|skriver|skrev"
)
_MINE = (
    r"i|i'm|i've|i'd|we|you|ich|wir|du|j['’]ai|je|nous|he (?:dicho|escrito)|ho (?:detto|scritto)|eu|ik|wij|я|мы|ja|ben"
    r"|jag"
    r"|jeg|rules?|regeln?"
)
_DENSE_SAYS = "(?<!我)(?:说|說|写道|寫道|写着|回复)|言った|言われた|書いて(?:ある|あった)|말했|썼|적혀"
_CAME = (
    r"got|received|forwarded|came|arrived|bekommen|erhalten|bekam|kam|reçu|recibí|recibido|llegó|ricevuto|arrivato"
    r"|recebi"
    r"|chegou|kreeg|ontvangen|kwam|dostał\w*|przyszło|получил\w*|пришло|aldım|geldi|fick|fikk"
)
_THIS = (
    r"this|these|the following|das|dies\w*|folgend\w*|ça|ceci|cela|esto|questo|isto|dit|deze|это|вот|to|bunu|şu|detta"
    r"|dette"
)
_SALUTATION = r"(?:^[ \t]*|[:：][ \t]*)"
_NAME = r"[^\W\d_][\w.'’-]*(?:[ ]+[\w.'’-]+){0,4}"
_FORMAL = (
    r"(?:dear (?:(?:mr|mrs|ms|mx|miss|dr|prof|professor|sir|madam|customer|client|guest|colleague|neighbou?r|parent"
    r"|tenant"
    r"|member|resident|friend|all|team)s?\b)|to whom it may concern|sehr geehrte[rs]?|(?:liebe[rs]?|werte[rs]?) "
    r"(?:frau|herr|kund|eltern|kolleg|nachbar|mieter|gäste|mitglied|team|alle)\w*|(?:cher|chère)s? (?:monsieur|madame"
    r"|client|voisin|collègue|parent)\w*|(?:madame|monsieur)(?=[ ,])|(?:muy )?estimad[oa]s?|gentil[ei]|gentilissim[oa]"
    r"|egregi[oa]|spettabile|prezad[oa]s?|car[oi] (?:clienti?|collegh?i|vicini)|ilustríssim[oa]|excelentíssim[oa]"
    r"|geachte"
    r"|beste (?:meneer|mevrouw|klant|ouders|collega)\w*|szanown[aiy]\w*|уважаем\w+|sayın|bästa (?:kund|kollega)\w*)"
)
_DENSE_FORMAL = (
    r"(?:尊敬的|亲爱的|親愛的)[^\n：:，,]{1,20}[：:，,]"
    r"|^[^\n]{1,20}(?:様|殿|御中)[、,]?[ \t]*$|^[^\n]{1,20}(?:고객님|님께)[,.]?[ \t]*$"
)
_INFORMAL = (
    r"(?:dear|hi|hey|hello|good (?:morning|afternoon|evening)|liebe[rs]?|hallo|guten (?:tag|morgen|abend)|moin|servus"
    r"|cher"
    r"|chère|salut|bonjour|querid[oa]s?|hola|buen(?:os|as) \w+|car[oa]|ciao|buongiorno|salve|olá|oi|bom dia|boa tarde"
    r"|beste"
    r"|hoi|dag|hej|hei|kära|kære|drog[ia]|cześć|дорог\w+|привет|здравствуйте|добрый день|sevgili|merhaba)"
)
_TO_AN_ASSISTANT = (
    r"(?:there|claude|chat ?gpt|gpt|gemini|copilot|mistral|llama|siri|alexa|bot|chatbot|ai|assistants?|assistent\w*"
    r"|asistente|assistente|ассистент|asistan)\b"
)
_CLOSING = (
    r"(?:(?:kind|best|warm|warmest)(?: regards| wishes)?|(?:with )?(?:kind |best |warm )?regards|all the best|cheers"
    r"|(?:yours )?(?:sincerely|faithfully|truly)(?: yours)?|(?:many )?thanks|love|(?:mit )?(?:freundliche[nm]?"
    r"|liebe[nm]?"
    r"|viele[n]?|beste[n]?|herzliche[nm]?|schöne[n]?) gr(?:u|ü)(?:ß|ss)e?n?|lg|mfg|vg|gru(?:ß|ss)"
    r"|(?:bien )?cordialement"
    r"|bien à (?:vous|toi)|bises|amicalement|(?:un )?(?:cordial )?saludos?|atentamente|(?:un )?abrazos?|(?:cordiali"
    r"|distinti"
    r"|tanti)? ?saluti|un abbraccio|atenciosamente|abraços?|cumprimentos|(?:met )?(?:vriendelijke"
    r"|hartelijke) groet(?:en)?"
    r"|groet(?:jes|en)?|(?:med )?vänliga hälsningar|mvh|(?:med )?(?:venlig|vennlig) hilsen|hilsen|pozdrawiam"
    r"|z poważaniem|с уважением|всего доброго|saygılarımla|sevgiler|此致|敬礼|祝好|敬具|드림|올림)"
)
# A text is to be worked on, and follows: behind a colon, or below a line that points to it.
_WORK = (
    r"(?:summari[sz]e|tl;?dr|translate|proof-?read|re-?write|paraphrase|rephrase|reword|shorten|simplify|transcribe"
    r"|reply to"
    r"|übersetz(?:e|en)?|fass(?:e|en)?|zusammenfass(?:e|en)|korrigier(?:e|en)?|umformulier(?:e|en)|kürz(?:e|en)?"
    r"|tradui[st](?:re|ez)?|résume[rz]?|corrige[rz]?|reformule[rz]?|traduce|traducir|traduzca|resum[ae]|resumir"
    r"|corregir"
    r"|traduci|tradurre|riassum[ie]|riassumere|correggi|traduz(?:a|ir)?|resuma|corrija|vertaal|vertalen|samenvatten|vat"
    r"|przetłumacz|streść|popraw|переведи(?:те)?|перескажи|исправь|сократи|çevir|özetle|översätt|oversett|oversæt"
    r"|sammanfatta)"
)
_DENSE_WORK = "翻译|翻譯|总结|總結|概括|润色|校对|訳して|翻訳し|要約し|まとめて|번역해|요약해|교정해"
_LASTING = (
    r"always|never|every|each|whenever|when|if|from now|like this|this way|as follows|immer|nie|niemals|jede\w*|wenn"
    r"|ab jetzt"
    r"|künftig|toujours|jamais|chaque|quand|siempre|nunca|cada|cuando|sempre|mai|ogni|quando|altijd|nooit|elke|wanneer"
    r"|als"
    r"|всегда|никогда|кажд\w+|когда|если|zawsze|nigdy|każd\w+|kiedy|jeśli|her zaman|asla|alltid|aldrig|rules?|regeln?"
)
_POINTS = (
    r"this|these|following|below|text|it|das|dies\w*|folgend\w*|unten\w*|ça|ceci|ce|cet|cette|suivant\w*|esto|este|esta"
    r"|siguiente|questo|questa|seguente|isto|esse|seguinte|dit|deze|volgende|это|этот|следующ\w+|to|ten|poniższ\w+"
    r"|bunu|şunu"
    r"|detta|dette"
)
_SENTENCE = r"(?:(?<=[.!?。！？])|^)(?=[^\n:：.!?。！？]{0,160}[:：\n])"
_COLON = r"[:：](?!//)(?=\s*\S)"
_INTO = r"(?:in|into|to|ins|auf|en|al|in het|naar|na|на|till|til) (?:\w+ )?\w+"


class _Marks(NamedTuple):
    blocks: re.Pattern[str]
    inline: re.Pattern[str]
    single: re.Pattern[str]
    to_keep: re.Pattern[str]
    to_the_end: re.Pattern[str]
    salutations: re.Pattern[str]
    closing: re.Pattern[str]
    introduced: re.Pattern[str]


@cache
def _marks() -> _Marks:
    """Compiled when a text first needs them."""
    to_the_end = (
        rf"^[ \t]*(?:{_SENDER})[ ]*[:：][ ]*\S[^\n]*\n(?:[^\n]*\n){{0,4}}?[ \t]*(?:{_HEADER})[ ]*[:：]",
        rf"^[ \t]*-{{2,}}+[^\n]{{0,40}}(?:{_MESSAGE}|{_DENSE_MESSAGE})[^\n]{{0,20}}-{{2,}}[ \t]*$",
        r"^[ \t]*begin forwarded message",
        r"^[ \t]*(?:on|am|le|el|il|em|op|w dniu)\b[^\n]{5,100}(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu"
        r"|schreef|napisał\w*)[ ]*:[ \t]*$",
        rf"(?:(?<=[.!?。！？])|^)(?=[^\n:：.!?。！？]{{0,160}}[:：])(?=[^\n:：]*(?:\b(?:{_MESSAGE})\b"
        rf"|{_DENSE_MESSAGE}))"
        rf"(?=[^\n:：]*(?:\b(?:{_GIVEN})\b|{_DENSE_GIVEN}))[^\n:：]*[:：](?=\s*\S)",
    )
    salutations = (
        rf"{_SALUTATION}(?:{_FORMAL}(?:[ ]{_NAME})?[ ]*(?:[,:!，]|$)|{_DENSE_FORMAL})",
        rf"(?P<informal>{_SALUTATION}{_INFORMAL},?[ ](?!{_TO_AN_ASSISTANT}){_NAME}[ ]*(?:[,:!，]|$)|[:：][ \t]*\n)",
    )
    signed = r"(?:[ ]*[,!.]|[ ]*\n|(?<=gards)|(?<=grüße)|(?<=grüßen)|(?<=saludo)|(?<=уважением))[ \t\n]{0,3}[—–-]?[ ]*"
    closing = rf"(?:^|(?<=[.!?。！？])[ ]){_CLOSING}{signed}{_NAME}[.]?[ \t]*$"
    says = rf"(?![^\n:：]*\b(?:{_MINE})\b)(?=[^\n:：]*(?:\b(?:{_SAYS})\b|{_DENSE_SAYS}))"
    came = (
        rf"(?=[^\n:：]*\b(?:(?:{_CAME})\b[^\n:：]{{0,15}}\b(?:{_THIS})|(?:{_THIS})\b[^\n:：]{{0,40}}\b(?:{_CAME}))\b)"
    )
    work = rf"(?![^\n:：]*\b(?:{_LASTING}|let me|my question)\b)(?=[^\n:：]*(?:\b{_WORK}\b|{_DENSE_WORK}))"
    line = rf"\b(?:(?:{_POINTS}|{_MESSAGE})\b[^\n:：]{{0,40}}|{_INTO})[.?!]*|(?:以下|下面)[^\n:：]*"
    shown = (
        r"(?=[^\n:：]*\b(?:look at|check out|what do you think of|thoughts on|have you seen|schau dir|regarde|mira)\b)"
    )
    introduced = (
        rf"{_SENTENCE}{shown}[^\n:：]*\b(?:{_POINTS}) (?:{_MESSAGE})[.?!:：]*[ \t]*\n(?=\s*\S)"
        rf"|{_SENTENCE}(?:{says}|{came})[^\n:：]*(?<!\d){_COLON}"
        rf"|{_SENTENCE}{work}[^\n:：]*(?:{_COLON}|(?:{line})[ \t]*\n(?=\s*\S))"
    )
    flags = re.IGNORECASE | re.MULTILINE
    return _Marks(
        re.compile(_BLOCKS, re.DOTALL | re.MULTILINE),
        re.compile(_INLINE),
        re.compile(_SINGLE),
        re.compile(_TO_KEEP, flags),
        re.compile("|".join(to_the_end), flags),
        re.compile("|".join(salutations), flags),
        re.compile(closing, flags),
        re.compile(introduced, flags),
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
    marks = _marks()
    for found in marks.blocks.finditer(text):
        yield found.span()
    for found in marks.inline.finditer(text):
        if _is_speech(found[0][1:-1]) and not marks.to_keep.search(text, max(0, found.start() - 80), found.start()):
            yield found.span()
    forwarded = marks.to_the_end.search(text)
    if forwarded is not None:
        yield forwarded.end() if forwarded[0].rstrip().endswith((":", "：")) else forwarded.start(), len(text)
    mail = _mail(text)
    if mail is not None:
        yield mail, len(text)
    for introduction in marks.introduced.finditer(text):
        start = _SPACE.match(text, introduction.end()).end()  # pyright: ignore[reportOptionalMemberAccess]  # always one
        places = (pattern.match(text, start) for pattern in (marks.blocks, marks.inline, marks.single))
        ending = next((found.end() for found in places if found), len(text))
        yield start, ending
        if ending == len(text):
            return


def _mail(text: str) -> int | None:
    """Return where a mail begins that has no headers: at a formal salutation, or at any that a signature follows."""
    marks = _marks()
    signed = max((found.start() for found in marks.closing.finditer(text)), default=-1)
    for found in marks.salutations.finditer(text):
        if found["informal"] is None or found.end() <= signed:
            return found.start()
    return None


def _is_speech(words: str) -> bool:
    """Tell whether a quotation says something; what is shorter is a name, a title or a word."""
    return len(words.split()) + len(_DENSE.findall(words)) // 2 >= _FEWEST_WORDS
