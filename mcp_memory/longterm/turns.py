"""L0: turns on their way in. What this system itself put into a context is cut out, and secrets are masked.

Recalled text that were stored again would be found, recalled and stored once more; peers filled up with
echoes that way. So recalled blocks carry a tag that nothing inside can close, and the tag is what is cut.

Which turns no model needs to see: they are kept and found like any other, only never asked about.

Noise is a turn that is nothing but a greeting, an acknowledgement, a command to the host, words of the host itself,
symbols, or a copy of what this memory once showed. All of the turn has to be that: one word more and it is signal. A
short answer is signal wherever it may answer something, so the turn before is looked at: "ok" after a question or a
short proposal is a decision. In doubt it is signal: that costs some tokens, and a lost turn would cost a memory.

Phrases with which people greet, thank, praise and agree, and that say nothing else, in some twenty languages.

What each may answer decides whether a turn made of it can be passed over: see `noise`. Compared as `bare` leaves
them, so case, accents, width and marks do not matter. A word that tells something in another language ("moi") stands
in no list, and one that may answer a question ("later", "morning") in none but `ASSENT`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.secrets import mask, mask_id
from mcp_memory.core.text import is_blank, well_formed, without_blocks, zoned
from mcp_memory.core.types import NewTurn, Role, Turn
from mcp_memory.language.words import fold
from mcp_memory.suspicion import TAG, defused

__all__ = ["MAX_TURN_BYTES", "SUMMARY", "admit", "bare", "own_words", "phrases_of", "recall_block", "small_talk_kind"]

MAX_TURN_BYTES = 4 * 2**20
MAX_TURNS = 5_000

SUMMARY: tuple[Role, str] = ("system", "summary")
"""Role and name of the turn that tells what a conversation was before its client summed it up."""

_TAG = TAG
_OPENING = re.compile(rf"(<|&lt;|\\u003[cC]){_TAG}\b[^<>\n]{{0,200}}?(>|&gt;|\\u003[eE])")
"""As we write it, and as a page or a JSON text quotes it."""


def recall_block(text: str, *, part: str) -> str:
    """Return the text fenced as recalled data; nothing inside it can close the fence, or be taken for another's."""
    return f'<{_TAG} part="{part}">\n{defused(text)}\n</{_TAG}>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The turns to store. `emptied` held nothing but what was recalled; in `masked` of those kept a secret stood."""

    turns: list[NewTurn]
    emptied: int
    masked: int


def admit(turns: Sequence[NewTurn]) -> Admitted:
    """Return the turns to store, without recalled blocks and secrets.

    Raises InvalidInput, and stores nothing, when one of them cannot be stored as it is.
    """
    if not turns:
        raise InvalidInput("There are no turns to record. Pass at least one {role, content}.")
    if len(turns) > MAX_TURNS:
        raise InvalidInput(f"{len(turns)} turns at once are too many. Send at most {MAX_TURNS} in a call.")
    kept: list[NewTurn] = []
    masked = 0
    for place, turn in enumerate(turns, start=1):
        _check(turn, place)
        told = _own(turn.content)
        if not is_blank(told):
            content = mask(told, prose=turn.role != "tool")
            masked += content != told
            name = None if turn.name is None else mask(turn.name)
            id = None if turn.client_id is None else mask_id(turn.client_id)
            kept.append(replace(turn, content=content, name=name, client_id=id))
    return Admitted(turns=kept, emptied=len(turns) - len(kept), masked=masked)


def _own(text: str) -> str:
    if _TAG not in text:
        return text
    return without_blocks(text, _OPENING, lambda found: f"{found[1]}/{_TAG}{found[2]}", after=r"[ \t]*\n?")


def _check(turn: NewTurn, place: int) -> None:
    if is_blank(turn.content):
        raise InvalidInput(
            f"Turn {place} is empty: it has no visible character. Leave it out; nothing of this call was stored."
        )
    if turn.said_at is not None:
        try:
            zoned(turn.said_at)
        except ValueError:
            raise InvalidInput(
                f"Turn {place} was said at {turn.said_at.isoformat()}, which is out of range. Send a time such as "
                "2026-05-07T10:00:00Z; nothing of this call was stored."
            ) from None
    for field in (turn.content, turn.name or "", turn.client_id or ""):
        if not well_formed(field):
            raise InvalidInput(
                f"Turn {place} has a lone surrogate, which is not text. Send U+FFFD in its place, or keep the raw "
                "bytes with offload_tool_result; nothing of this call was stored."
            )
    if len(turn.content) > MAX_TURN_BYTES or len(turn.content.encode()) > MAX_TURN_BYTES:
        raise InvalidInput(
            f"Turn {place} is larger than {MAX_TURN_BYTES // 2**20} MiB. Keep it with offload_tool_result and record "
            "what was said about it; nothing of this call was stored."
        )


SmallTalk = Literal["greeting", "acknowledgement", "command", "host", "symbols", "recalled"]

_LONGEST = 120  # characters; what is longer says something
_PROPOSAL = 280  # a turn this short may propose something without asking
_ENDING = 600  # where a long turn asks, if it does


def small_talk_kind(turn: Turn, before: Turn | None = None) -> SmallTalk | None:
    """Return what kind of noise a turn is, None for signal. `before` is the turn that it may answer."""
    text = turn.content.strip()
    if _HOST.match(text) or not _without_host(text).strip():
        return "host"
    if not own_words(text):
        return "recalled"
    if _is_command(text, before):
        return "command"
    if not any(character.isalnum() for character in text):
        return None if _has_emoji(text) and _may_answer(before) else "symbols"
    return _phatic(text, before) if len(text) <= _LONGEST else None


# --- what the host and this memory say --------------------------------------------------------------

_HOST = re.compile(
    r"(?:a new session was started via /new or /reset\b"
    r"|new session started\. before greeting\b"
    r"|✅ new session started\b[^\n]*$"
    r"|pre-compaction memory flush\b"
    r"|read heartbeat\.md\b"
    r"|caveat: the messages below were generated by the user while running local commands\b"
    r"|\[request interrupted by user[^\]\n]*\]$"
    r"|\[(?:image|audio|video|voice|file|document|sticker|media)(?: #?\d+| omitted)?\]$"
    r"|(?:system: \[[^\n]*\s*)+$"
    r"|no response requested\.?$"
    r"|\W*(?:no_reply|heartbeat_ok)\W*$"
    # the prompts of this server, which a client sends as words of the user
    r"|here is what your memory holds\b.*\bbefore you guess\."
    r"|go on with the task ['\"].*['\"] where it was left\.\n"
    r"|before we stop, bring the memory up to date\.\n)",
    re.IGNORECASE,
)
_HOST_BLOCK = re.compile(
    r"<(system-reminder|command-name|command-message|local-command-(?:stdout|stderr|caveat)|task-notification"
    r"|user-prompt-submit-hook|environment_context)\b[^<>]*>|<(command-args)>(?=\s*</)"
)
# Lines of recall and the searches: `- [a57 · 2026-05-07] …`, `- [t12] …`, `> t12 · user · 2026-05-07 10:00: …`.
_RECALLED = re.compile(
    r"^[ \t>*-]*(?:\[?[at]\d{1,18} · |- \[t\d{1,18}\] ).*$\n?|^\s*</?mcp-memory-recall\b[^>]*>[ \t]*$\n?", re.MULTILINE
)


def own_words(text: str) -> str:
    """Return what somebody said in a text: without blocks of the host and lines that copy what this memory showed."""
    if "<" in text:
        text = _without_host(text)
    return _RECALLED.sub("", text).strip() if " · " in text or "- [t" in text or "<" in text else text.strip()


def _without_host(text: str) -> str:
    return without_blocks(text, _HOST_BLOCK, lambda found: f"</{found[1] or found[2]}>") if "<" in text else text


_COMMAND = re.compile(
    r"/(?:agents|clear|compact|config|context|cost|doctor|exit|help|history|init|login|logout|mcp|memory|new|permissions"
    r"|quit|reset|restart|resume|retry|review|settings|start|status|stop|tools|undo|usage|version)"
    r"|/(?:effort|elevated|fast|model|output-style|reasoning|theme|think|thinking|verbose)(?:[ \t]+\S+)?",
    re.IGNORECASE,
)
_MAY_BE_ONE = re.compile(r"/[a-z][a-z0-9_:-]*", re.IGNORECASE)
_FOLDER = re.compile(
    r"/(?:app|applications|bin|boot|build|code|data|dev|docs|etc|home|lib|lib64|library|media|mnt|opt|private|proc|root"
    r"|run|sbin|src|srv|sys|system|tests?|tmp|users|usr|var|volumes|work|workspaces?)",
    re.IGNORECASE,
)


def _is_command(text: str, before: Turn | None) -> bool:
    """Tell whether a turn only steers the host. A path does not, nor does a command with something to work on."""
    if _COMMAND.fullmatch(text):
        return True
    return bool(_MAY_BE_ONE.fullmatch(text)) and not _FOLDER.fullmatch(text) and not _asks(before)


# --- what people say without saying anything --------------------------------------------------------


def _phatic(text: str, before: Turn | None) -> SmallTalk | None:
    kinds = phrases_of(text, _names(before))
    if kinds is None or kinds <= {"filler"}:
        return None
    if "agreement" in kinds and before is not None:
        return None
    if "assent" in kinds and _may_answer(before):
        return None
    if "praise" in kinds and _asks(before):
        return None
    return "greeting" if "greeting" in kinds else "acknowledgement"


def _names(before: Turn | None) -> frozenset[str]:
    """Return the words by which whoever spoke before may be addressed."""
    return frozenset(bare(before.name).split()) if before is not None and before.name else frozenset()


_QUESTION = re.compile(r"[?？؟\u037e⁇]|吗|か。|까\.")


def _asks(before: Turn | None) -> bool:
    return before is not None and bool(_QUESTION.search(before.content[-_ENDING:]))


def _may_answer(before: Turn | None) -> bool:
    """Tell whether there is something to say yes or no to: a question, or what is short enough to be a proposal."""
    return before is not None and (_asks(before) or (len(before.content) <= _PROPOSAL and not _says_nothing(before)))


def _says_nothing(turn: Turn) -> bool:
    kinds = phrases_of(turn.content) if len(turn.content) <= _LONGEST else None
    return kinds is not None and kinds <= {"greeting", "courtesy", "filler"}


def _has_emoji(text: str) -> bool:
    return any(unicodedata.category(character) == "So" for character in text)


Phrase = Literal["greeting", "courtesy", "praise", "assent", "agreement", "filler"]
"""Greeting and courtesy answer nothing; praise may answer a question; assent a question or a proposal; agreement
takes up whatever was said. A filler says nothing, but is nothing by itself either."""

_GREETING = """
    hi, hello, hey, hiya, howdy, yo, hi there, hey there, hello there, good morning, good afternoon, good evening,
    greetings, welcome, welcome back, how are you, how are you doing, how have you been, how's it going,
    how are things, what's up, what's new, sup, nice to meet you, good to see you, great to see you,
    long time no see, how can i help you, how can i help, how can i assist you, how may i help you,
    what can i do for you, just wanted to say hi, hallo, guten morgen, guten tag, guten abend, moin, servus,
    grüß gott, grüezi, wie geht's, wie geht es dir, wie geht es ihnen, willkommen, freut mich, wie kann ich helfen,
    wie kann ich dir helfen, wie kann ich ihnen helfen, bonjour, bonsoir, salut, coucou, ça va, comment ça va,
    comment vas-tu, comment allez-vous, bienvenue, enchanté, enchantée, comment puis-je vous aider,
    comment puis-je t'aider, hola, buenos días, buenas tardes, buenas noches, buenas, qué tal, cómo estás, cómo está,
    cómo te va, bienvenido, bienvenida, encantado, encantada, mucho gusto, en qué puedo ayudarte,
    cómo puedo ayudarte, ciao, salve, buongiorno, buonasera, buon pomeriggio, come stai, come va, come sta,
    benvenuto, benvenuta, come posso aiutarti, olá, oi, bom dia, boa tarde, boa noite, tudo bem, como vai,
    como você está, e aí, bem-vindo, bem-vinda, prazer, como posso ajudar, como posso te ajudar, hoi, goedemorgen,
    goedemiddag, goedenavond, goedendag, hoe gaat het, hoe is het, welkom, hej, hejsan, god morgon, god morgen,
    god kväll, god aften, hur mår du, hvordan har du det, hvordan går det, hei, huomenta, hyvää huomenta,
    hyvää päivää, terve, mitä kuuluu, cześć, dzień dobry, dobry wieczór, witam, jak się masz, co słychać, ahoj,
    dobrý den, dobré ráno, jak se máš, привет, приветик, здравствуй, здравствуйте, добрый день, доброе утро,
    добрый вечер, доброго времени суток, как дела, как ты, как вы, как поживаешь, добро пожаловать,
    приятно познакомиться, чем могу помочь, вітаю, привіт, доброго дня, добрий день, як справи, merhaba, selam,
    günaydın, iyi akşamlar, iyi günler, nasılsın, nasılsınız, naber, hoş geldin, hoş geldiniz, γεια, γεια σου,
    γεια σας, καλημέρα, καλησπέρα, τι κάνεις, τι κάνετε, καλώς ήρθες, مرحبا, أهلا, أهلا وسهلا, السلام عليكم,
    وعليكم السلام, صباح الخير, مساء الخير, كيف حالك, سلام, درود, صبح بخیر, حال شما چطور است, שלום, היי, בוקר טוב,
    ערב טוב, צהריים טובים, מה שלומך, מה נשמע, नमस्ते, नमस्कार, हैलो, सुप्रभात, कैसे हो, आप कैसे हैं, halo, selamat pagi,
    selamat siang, selamat sore, selamat malam, apa kabar, xin chào, chào, chào bạn, bạn khỏe không, สวัสดี,
    สวัสดีครับ, สวัสดีค่ะ, สบายดีไหม, 你好, 您好, 你们好, 大家好, 嗨, 哈喽, 哈啰, 嘿, 早上好, 早安, 上午好, 中午好,
    下午好, 晚上好, 你好吗, 最近怎么样, 最近好吗, 在吗, 在不在, 好久不见, 很高兴认识你, 很高兴见到你,
    有什么可以帮你的吗, 有什么可以帮您的吗, 有什么能帮到你的吗, 欢迎, 欢迎回来, 早晨, 晚安, こんにちは, こんにちわ,
    こんばんは, おはよう, おはようございます, やあ, どうも, もしもし, はじめまして, お元気ですか, 元気ですか,
    よろしく, よろしくお願いします, よろしくお願いいたします, お久しぶりです, 久しぶり, ようこそ, 안녕, 안녕하세요,
    안녕하십니까, 반가워, 반갑습니다, 반가워요, 잘 지내, 잘 지냈어, 잘 지내세요, 잘 지내셨어요, 좋은 아침,
    좋은 아침이에요, 어떻게 지내, 어떻게 지내세요, 무엇을 도와드릴까요"""
_COURTESY = """
    thanks, thank you, thx, tysm, cheers, many thanks, thanks a lot, thanks a bunch, thanks a million,
    thank you so much, thank you very much, thanks so much, thanks for your help, thank you for your help,
    thanks for the help, thanks for the info, thanks for the tip, thanks for sharing, thanks for letting me know,
    thanks for asking, thank you for asking, i appreciate it, much appreciated, appreciate it, you're welcome,
    you are welcome, my pleasure, don't mention it, glad i could help, glad to help, happy to help,
    i'm glad i could help, i'm happy to help, bye, bye bye, goodbye, good bye, bye for now, see you, see ya,
    see you later, see you soon, see you around, see you then, talk to you later, talk soon, ttyl, catch you later,
    take care, have a good day, have a great day, have a nice day, have a good one, have fun, good night, goodnight,
    good luck, enjoy, cya, haha, hehe, lol, rofl, lmao, hmm, hm, ah, oh, aww, whoa, yay, danke, dankeschön,
    danke schön, danke sehr, vielen dank, tausend dank, herzlichen dank, besten dank, danke dir, danke ihnen,
    bitte schön, bitteschön, gern geschehen, keine ursache, tschüss, tschüs, auf wiedersehen, bis bald, bis später,
    bis dann, bis morgen, mach's gut, gute nacht, schönen tag noch, schönen abend noch, schönes wochenende,
    viel glück, merci, merci beaucoup, merci bien, mille mercis, un grand merci, de rien, je vous en prie,
    je t'en prie, au revoir, à bientôt, à plus, à plus tard, à demain, bonne nuit, bonne journée, bonne soirée,
    bon courage, bonne chance, mdr, ptdr, gracias, muchas gracias, mil gracias, de nada, no hay de qué, adiós,
    hasta luego, hasta pronto, hasta mañana, nos vemos, chao, chau, que tengas un buen día, cuídate, buena suerte,
    suerte, grazie, grazie mille, molte grazie, ti ringrazio, prego, di niente, figurati, arrivederci, a presto,
    a dopo, a domani, buonanotte, buona notte, buona giornata, buona serata, buona fortuna, obrigado, obrigada,
    muito obrigado, muito obrigada, valeu, disponha, por nada, tchau, até logo, até mais, até breve, até amanhã,
    tenha um bom dia, boa sorte, dank je, dank u, dankjewel, dankuwel, bedankt, hartelijk dank, graag gedaan,
    tot ziens, doei, tot later, tot morgen, welterusten, tack, tack så mycket, tusen tack, varsågod, hej då, vi ses,
    god natt, takk, tusen takk, mange takk, tak, mange tak, selv tak, farvel, ha det, kiitos, kiitos paljon,
    ole hyvä, näkemiin, hei hei, hyvää yötä, dzięki, dziękuję, dziękuję bardzo, nie ma za co, do widzenia, pa,
    do zobaczenia, dobranoc, děkuji, díky, není zač, na shledanou, спасибо, спасибо большое, большое спасибо,
    огромное спасибо, благодарю, не за что, пока, пока пока, до свидания, до встречи, до завтра, увидимся,
    спокойной ночи, хорошего дня, удачи, дякую, дуже дякую, немає за що, до побачення, teşekkürler, teşekkür ederim,
    çok teşekkürler, çok teşekkür ederim, sağ ol, sağol, rica ederim, hoşça kal, görüşürüz, iyi geceler, ευχαριστώ,
    ευχαριστώ πολύ, σ'ευχαριστώ, παρακαλώ, αντίο, τα λέμε, καληνύχτα, καλή τύχη, شكرا, شكرا جزيلا, شكرا لك, عفوا,
    مع السلامة, إلى اللقاء, تصبح على خير, ممنون, متشکرم, مرسی, خواهش می کنم, خداحافظ, תודה, תודה רבה, בבקשה,
    אין בעד מה, להתראות, ביי, לילה טוב, धन्यवाद, शुक्रिया, बहुत धन्यवाद, बहुत बहुत धन्यवाद, स्वागत है, अलविदा, शुभ रात्रि,
    terima kasih, makasih, terima kasih banyak, sama-sama, selamat tinggal, sampai jumpa, dadah, cảm ơn, cảm ơn bạn,
    cảm ơn nhiều, không có gì, tạm biệt, hẹn gặp lại, ขอบคุณ, ขอบคุณครับ, ขอบคุณค่ะ, ขอบคุณมาก, ลาก่อน, 谢谢, 谢谢你,
    谢谢您, 谢谢啦, 谢啦, 谢了, 多谢, 多谢你, 非常感谢, 感谢, 感谢你, 感谢您, 十分感谢, 太感谢了, 不客气, 不用谢,
    不谢, 应该的, 再见, 拜拜, 回头见, 明天见, 下次见, 回见, 祝你好运, 加油, 哈哈, 呵呵, 嘿嘿, 哦, 噢, 啊, 哇, 辛苦了,
    麻烦你了, 感谢你的建议, 谢谢你的建议, 谢谢你的帮助, 感谢你的帮助, 谢谢你的推荐, 謝謝, 謝謝你, 謝謝您, 感謝, 多謝,
    不客氣, 不用謝, 再見, ありがとう, ありがとうございます, ありがとうございました, どうもありがとう,
    どうもありがとうございます, 感謝します, 助かりました, 助かります, どういたしまして, さようなら, さよなら,
    じゃあね, またね, また明日, おやすみ, おやすみなさい, お疲れ様, お疲れ様です, お疲れ様でした, 笑, へえ, ふーん,
    고마워, 고마워요, 고맙습니다, 감사합니다, 감사해요, 감사, 정말 감사합니다, 천만에요, 별말씀을요, 안녕히 가세요,
    안녕히 계세요, 잘 가, 잘 있어, 또 봐, 또 봐요, 내일 봐, 잘 자, 잘 자요, 수고하세요, 수고하셨습니다"""
_PRAISE = """
    great, awesome, amazing, cool, wow, excellent, wonderful, fantastic, brilliant, lovely, very nice, how nice,
    so nice, that's nice, that's great, that's awesome, that's amazing, that's cool, that's wonderful,
    that's fantastic, this is great, sounds great, looks great, great job, good job, nice job, well done, nice work,
    great work, congrats, congratulations, very helpful, that's helpful, that's very helpful, that helps,
    that was helpful, this is helpful, so cute, interesting, i see, makes sense, that makes sense, good to know,
    good point, exactly, indeed, totally, absolutely, so true, for sure, love it, i love it, impressive, super, toll,
    klasse, prima, wunderbar, sehr schön, sehr gut, spitze, interessant, ach so, stimmt, genau, alles gute,
    gut gemacht, glückwunsch, herzlichen glückwunsch, das hilft, génial, formidable, magnifique, très bien, bravo,
    félicitations, intéressant, exactement, chouette, je vois, genial, estupendo, excelente, perfecto, qué bien,
    muy bien, increíble, felicidades, interesante, exacto, ya veo, fantastico, ottimo, perfetto, bellissimo,
    molto bene, brava, complimenti, interessante, esatto, che bello, capisco, ótimo, perfeito, que legal, legal,
    muito bem, parabéns, exato, que bom, maravilha, entendi, geweldig, mooi, prachtig, goed zo, leuk, gefeliciteerd,
    fantastiskt, underbart, bra, flott, fint, mahtavaa, hienoa, hyvä, świetnie, wspaniale, brawo, gratulacje, skvělé,
    výborně, отлично, супер, круто, здорово, класс, замечательно, прекрасно, молодец, поздравляю, интересно, точно,
    ясно, понятно, чудово, зрозуміло, harika, süper, mükemmel, çok güzel, tebrikler, anladım, τέλεια, μπράβο,
    υπέροχα, رائع, ممتاز, جميل, مبروك, عالی, מעולה, נהדר, מצוין, יופי, बहुत अच्छा, बढ़िया, शानदार, bagus, keren, hebat,
    mantap, tuyệt vời, tuyệt, hay quá, เยี่ยม, เยี่ยมมาก, ดีมาก, 太好了, 太棒了, 真棒, 很棒, 好棒, 非常好, 很好, 真好,
    不错, 真不错, 很不错, 厉害, 太厉害了, 真厉害, 牛, 赞, 哇塞, 恭喜, 恭喜你, 有意思, 原来如此, 明白, 明白了,
    我明白了, 了解, 知道了, 我知道了, 懂了, 收到, 说得对, 没错, 当然, 太好啦, 很有帮助, すごい, すごいですね,
    素晴らしい, いいね, いいですね, 最高, なるほど, なるほどですね, 了解です, 了解しました, 承知しました,
    かしこまりました, わかりました, 分かりました, わかった, そうですね, そうなんだ, そうなんですね, おめでとう,
    おめでとうございます, 좋아, 좋아요, 좋네요, 대단해, 대단해요, 멋져, 멋져요, 최고, 최고예요, 훌륭해요, 축하해,
    축하해요, 축하합니다, 그렇군요, 그렇구나, 알겠어, 알겠어요, 알겠습니다, 이해했어요, 오"""
_ASSENT = """
    morning, hai, 早, anytime, later, mhm, uh huh, sorry, bitte, gerne, avec plaisir, con mucho gusto, пожалуйста,
    будь ласка, 没事, 没关系, 嗯, 嗯嗯, うーん, ok, okay, okey, k, kk, yes, yeah, yep, yup, yea, ya, no, nope, nah,
    sure, sure thing, of course, certainly, definitely, right, alright, all right, fine, that's fine, done, perfect,
    good, nice, true, correct, got it, gotcha, understood, i understand, noted, acknowledged, will do, you got it,
    you bet, no problem, no worries, np, roger, copy that, go on, continue, please continue, continue please,
    keep going, carry on, please do, never mind, nevermind, me too, you too, same here, same to you, same, ja, jep,
    jo, nein, nee, nö, klar, na klar, alles klar, in ordnung, passt, gut, richtig, stimmt, verstanden, verstehe,
    ich verstehe, perfekt, mach ich, kein problem, weiter, weiter bitte, bitte weiter, mach weiter, natürlich,
    selbstverständlich, oui, ouais, non, bien sûr, entendu, compris, c'est bon, c'est compris, parfait, bien, bon,
    pas de problème, pas de souci, continuez, vas-y, allez-y, sí, si, vale, claro, claro que sí, por supuesto,
    entendido, entiendo, bueno, está bien, listo, hecho, dale, sin problema, no hay problema, continúa, sigue,
    adelante, sì, va bene, certo, certamente, capito, ho capito, bene, fatto, nessun problema, continua, vai avanti,
    sim, não, tá, tá bom, está bem, está bom, beleza, com certeza, sem problema, sem problemas, oké, prima, goed,
    natuurlijk, begrepen, geen probleem, ga door, visst, okej, javisst, inga problem, självklart, förstår, nej, nei,
    selvfølgelig, greit, joo, kyllä, ei, selvä, okei, hyvä on, tak, nie, dobrze, dobra, jasne, oczywiście, rozumiem,
    ano, ne, dobře, jasně, rozumím, да, нет, ага, угу, ок, окей, хорошо, ладно, конечно, понял, поняла, идёт, давай,
    давайте, верно, без проблем, продолжай, продолжайте, дальше, так, ні, добре, гаразд, звичайно, evet, hayır,
    tamam, tamamdır, peki, olur, elbette, tabii, tabii ki, devam, devam et, ναι, όχι, εντάξει, βεβαίως, φυσικά,
    σωστά, συνέχισε, نعم, لا, حسنا, تمام, طيب, أكيد, بالتأكيد, مفهوم, أجل, باشه, بله, نه, כן, לא, בסדר, אוקיי, סבבה,
    בטח, ברור, הבנתי, हाँ, हां, नहीं, ठीक है, ठीक, जी, जी हाँ, अच्छा, बिल्कुल, समझ गया, iya, tidak, baik, oke, tentu,
    siap, mengerti, lanjut, lanjutkan, vâng, dạ, không, được, được rồi, ừ, ครับ, ค่ะ, ใช่, ไม่, ไม่ใช่, ได้, โอเค, 好,
    好的, 好啊, 好呀, 好吧, 好滴, 好嘞, 行, 行吧, 可以, 可以的, 是, 是的, 是啊, 对, 对的, 对啊, 对呀, 不, 不是, 不要,
    不用, 没有, 没问题, 当然可以, 当然了, 继续, 请继续, 继续吧, 完成, 确实, 也是, 沒問題, 對, 當然, 繼續, はい,
    はいはい, ええ, うん, うんうん, そう, そうです, そうだね, いいえ, いや, いいよ, いいですよ, もちろん, オーケー,
    オッケー, 大丈夫, 大丈夫です, お願いします, お願い, 結構です, 続けて, 続けてください, 続き, 네, 예, 응, 어, 그래,
    그래요, 그럼, 그럼요, 물론, 물론이죠, 맞아, 맞아요, 맞습니다, 아니, 아니요, 아뇨, 오케이, 괜찮아, 괜찮아요,
    문제없어요, 계속, 계속해, 계속해줘, 계속해주세요, 넵, 넹"""
_AGREEMENT = """
    agreed, agree, i agree, deal, sounds good, sounds like a plan, works for me, go ahead, yes please, let's do it,
    let's do that, let's go with that, einverstanden, abgemacht, machen wir so, so machen wir es, d'accord,
    ok d'accord, ça marche, de acuerdo, trato hecho, d'accordo, affare fatto, de acordo, combinado, fechado, akkoord,
    afgesproken, zgoda, umowa stoi, договорились, согласен, согласна, домовились, згоден, anlaştık, موافق, מסכים,
    setuju, đồng ý, ตกลง, 同意, 我同意, 成交, 一言为定, 就这样, 就这么定了, 同意します, 賛成, そうしましょう,
    동의해요, 그렇게 해요, 그렇게 하자, συμφωνώ, सहमत"""
_FILLER = """
    so much, very much, a lot, again, then, now, all, everyone, everybody, guys, folks, team, there, dear, friend,
    my friend, buddy, mate, man, dude, bro, today, so, well, just, really, very, and, to you, to you too, for now,
    for that, please, assistant, ai, claude, chatgpt, gpt, gemini, copilot, bot, sir, ma'am, everything's fine, dir,
    ihnen, euch, auch, sehr, noch, schon, dann, na dann, zusammen, heute, mein freund, und, à tous, tout le monde,
    alors, mon ami, beaucoup, à toi, à vous aussi, et, a todos, amigo, amiga, mi amigo, entonces, mucho, muy, y,
    a tutti, tutti, amico mio, allora, molto, e, pessoal, gente, então, muito, meu amigo, большое, всем, друг,
    мой друг, тогда, очень, вам, тебе, и, herkese, çok, 啊, 呀, 哦, 啦, 呢, 吧, 了, 嘛, 哟, 喔, 朋友, 我的朋友,
    亲爱的, 非常, 真的, 大家, 那, ai伴侣, 助手, 皆さん, みなさん, です, ね, よ, 本当に, とても, では, じゃあ, 여러분,
    정말, 너무, 그러면, 아주"""
_TABLES: dict[Phrase, str] = {
    "filler": _FILLER,
    "greeting": _GREETING,
    "courtesy": _COURTESY,
    "praise": _PRAISE,
    "assent": _ASSENT,  # of a phrase in several tables the last holds: what may answer more
    "agreement": _AGREEMENT,
}
_LAUGH = r"(?:ha){2,}h?|(?:he){2,}h?|(?:hi){2,}|(?:ja){2,}|k{3,}|l(?:o+l)+|哈+|呵+|嘿+|ㅋ+|ㅎ+|w{2,}|(?:ха){2,}"


def phrases_of(text: str, names: frozenset[str] = frozenset()) -> set[Phrase] | None:
    """Return the kinds of phrases that a text consists of; None where it says anything else.

    `names`, as `bare` leaves them, address somebody and say nothing.
    """
    table, pattern = _compiled()
    words = bare(text)
    kinds: set[Phrase] = set()
    at = 0
    while at < len(words):
        if found := pattern.match(words, at):
            kinds.add(table.get(found[0], "courtesy"))  # what is in no table is laughter
            at = found.end()
        elif (word := words[at:].partition(" ")[0]) in names:
            kinds.add("filler")
            at += len(word)
        else:
            return None
        at += words.startswith(" ", at)
    return kinds


def bare(text: str) -> str:
    """Return the words of a text, folded, with one space between them."""
    marks_too = (c if unicodedata.category(c)[0] in "LMN" else " " for c in fold(text.strip()))
    return " ".join("".join(marks_too).split())


@cache
def _compiled() -> tuple[dict[str, Phrase], re.Pattern[str]]:
    table: dict[str, Phrase] = {}
    for kind, phrases in _TABLES.items():
        table |= dict.fromkeys(map(bare, phrases.split(",")), kind)
    longest = sorted(table, key=len, reverse=True)
    alone = "|".join(re.escape(phrase) for phrase in longest if not _runs_on(phrase))
    running = "|".join(re.escape(phrase) for phrase in longest if _runs_on(phrase))
    return table, re.compile(rf"(?:{alone}|{_LAUGH})(?= |$)|{running}")


def _runs_on(phrase: str) -> bool:
    """Tell whether a phrase is of a script that seldom writes a space after it."""
    return "\u0e00" <= phrase[-1] <= "\u0eff" or phrase[-1] >= "\u2e80"
