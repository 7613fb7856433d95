"""Standing rules in Russian, Polish and Turkish."""

from __future__ import annotations

from mcp_memory.standing_rules.grammar import Grammar, RulePattern

__all__ = ["POLISH", "RUSSIAN", "TURKISH"]

_RU_START = r"(?:^\W*|[,;:(–—-]\s*|\b(?:и|а|но|или|также|пожалуйста|ну|да|ок|ещё|еще) )"
_RU_IMPERATIVE = r"\w{2,}(?:ай|яй|ей|уй|юй|ой|и|ь|ись|йся|ьте|йте|ите)(?:те|ся)?"
_RU_IDIOM = r"(?:проблем|сомнени|понятия|спасибо|вопрос|паник|обид|разницы|шуток)"

RUSSIAN = Grammar(
    "ru",
    r"\b(?:я|он|она|оно|они|мы|мне|ему|ей|было?|была|были|будет|есть|нет|\w{2,}(?:ал|ял|ил|ел|ала|яла|ила"
    r"|ела|али|яли|или|ели|лась|лся|лись|ает|яет|ит|ют|ут|ёт|ет))\b",
    (
        RulePattern(
            "instruction",
            0.95,
            "впредь отныне момента будущем дальнейшем сегодняшнего",
            r"\b(?:впредь|отныне|с (?:этого|сегодняшнего) (?:момента|дня)|в (?:будущем|дальнейшем),? (?:пожалуйста"
            r"|не|всегда|пиши|используй))\b(?! я )",
            "none",
        ),
        RulePattern(
            "instruction",
            0.9,
            "никогда ни",
            rf"{_RU_START}никогда (?:больше )?не (?:{_RU_IMPERATIVE}|\w+(?:ть|ти|ться))\b|\bни в коем случае не\b"
            rf"|{_RU_START}ни при каких",
        ),
        RulePattern(
            "instruction",
            0.85,
            "всегда обязательно",
            rf"{_RU_START}(?:всегда|обязательно) (?:{_RU_IMPERATIVE}|\w+(?:ть|ти)|в|на|с|без|по|через|до|после|¤)\b"
            rf"|{_RU_START}{_RU_IMPERATIVE} (?:мне |только )?всегда\b",
        ),
        RulePattern(
            "instruction",
            0.75,
            "всегда никогда",
            r"(?:^\W*|[,;:–—-] ?)(?:[\w¤-]+ ){1,4}всегда (?:в|на|с|без|по|через|до|после|¤)\b",
        ),
        RulePattern(
            "instruction",
            0.65,
            "пожалуйста",
            rf"\b(?:без|никаких|только|всегда|никогда) (?!{_RU_IDIOM})[^.;:!?]{{1,50}}\bпожалуйста\b"
            rf"|\bпожалуйста,? (?:без|никаких|только|всегда|никогда|больше не)\b(?! {_RU_IDIOM})",
        ),
        RulePattern(
            "instruction", 0.7, "никаких никакого никакой", rf"{_RU_START}никак(?:их|ого|ой) (?!{_RU_IDIOM})\w"
        ),
        RulePattern(
            "instruction",
            0.5,
            "не",
            rf"{_RU_START}(?:больше )?не (?:используй|пиши|ставь|добавляй|обращайся|называй|говори|предлагай|обещай"
            rf"|меняй|трогай|сокращай|переводи|отправляй|упоминай|делай|вставляй)(?:те"
            rf"|тесь)?\b(?![^,.;:!?]*\b(?:сейчас|пока|сегодня|это|этого)\b)",
        ),
        RulePattern(
            "instruction",
            0.6,
            "только",
            rf"{_RU_START}(?:{_RU_IMPERATIVE} )?только (?:в|на|с|по|после|до|через) ?[\w-]+(?: [\w-]+)?\W*$",
        ),
        RulePattern(
            "instruction",
            0.7,
            "должен должна должно должны нельзя",
            r"\b(?:должн[аоы]|должен) (?:всегда|никогда|только|обязательно)\b|\bнельзя (?:\w+ ){0,3}?\w+(?:ть"
            r"|ти)\b(?! (?:сказать|забыть))",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "запрещено запрещены запрещён запрещена запрещается",
            r"\bзапрещ(?:ено|ены|ён|ена|ается)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.55,
            "предпочитаю хочу ненавижу",
            r"\bпредпочитаю\b|\bя (?:не )?хочу,? (?:чтобы (?:всегда|все|каждый|никогда|ты (?:всегда|никогда|не))"
            r"|только)|\bтерпеть не могу,? когда (?:ты|мне)",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "вы ты",
            r"\b(?:на|по) [«\"¤]?(?:вы|ты)[»\"¤]?\W*$|\bобраща\w+ на [«\"¤]*(?:вы|ты)|\bна ¤{4}",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "отвечай отвечайте пиши говори называй зови",
            rf"{_RU_START}(?:(?:отвечай|пиши|говори)(?:те)? (?:мне |со мной )?(?:только )?(?:по-|на )\w+|(?:называй"
            rf"|зови)(?:те)? меня )",
        ),
        RulePattern(
            "instruction",
            0.6,
            "все всё каждый каждая каждое",
            r"\b(?:все|всё|кажд(?:ый|ая|ое)) [^.;:!?]{0,40}\bдолж(?:ен|на|но|ны)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.85,
            "аллергия аллергик аллергии веган вегетарианец вегетарианка непереносимость диабет целиакия",
            r"\b(?:у \w+|я|он|она|мой \w+|моя \w+)\b[^.;!?]{0,25}\b(?:аллерги[яки]\w*|веган\w*|вегетариан\w*"
            r"|непереносимость|диабет\w*|целиаки\w*)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "ем пью курю ест пьёт",
            r"\b(?:я|он|она) (?:вообще |совсем |никогда )?не (?:ем|пью|курю|ест|пьёт|пьет|переношу"
            r"|вожу)\b(?! (?:сейчас|сегодня))",
            "none",
        ),
        RulePattern(
            "constraint",
            0.7,
            "нельзя могу может",
            r"\bмне нельзя\b|\b(?:не могу|не может) (?:есть|пить|поднимать|водить|курить|летать"
            r"|наклоняться)\b(?![^.;!?]*\bсегодня\b)",
            "none",
        ),
        RulePattern(
            "constraint",
            0.8,
            "никогда",
            r"\bпо (?:понедельникам|вторникам|средам|четвергам|пятницам|субботам|воскресеньям"
            r"|выходным)[, ]*(?:никогда|нельзя|не )",
        ),
        RulePattern(
            "constraint",
            0.5,
            "больше максимум позже",
            r"\bне (?:больше|более|позже|позднее) \d|\bмаксимум \d|\d[^.;:!?]{0,20}\b(?:максимум|не (?:больше"
            r"|позже))\b",
            "clause",
        ),
    ),
)

_PL_START = r"(?:^\W*|[,;:(–—]\s*| - |\b(?:i|a|ale|lub|też|proszę|no|tak|ok) )"
_PL_DO = (
    r"(?:używaj|pisz|podawaj|dodawaj|wysyłaj|stawiaj|mów|zwracaj|tłumacz|odpowiadaj|zaokrąglaj|pytaj"
    r"|zmieniaj|skracaj|wstawiaj|rób|obiecuj|proponuj|podpisuj|nazywaj)(?:cie)?"
)


POLISH = Grammar(
    "pl",
    r"\b(?:ja|on|ona|oni|my|jest|są|był\w*|będzie|mam|ma|jestem|\w{2,}(?:łem|łam|ł|ła|ło|li|ły|liśmy|łyśmy))\b",
    (
        RulePattern(
            "instruction",
            0.95,
            "teraz odtąd przyszłość dziś",
            r"\b(?:od (?:teraz|dziś|dzisiaj)|odtąd|na przyszłość)\b(?! (?:będę|jestem|mam))",
            "none",
        ),
        RulePattern(
            "instruction",
            0.9,
            "nigdy",
            rf"{_PL_START}nigdy (?:więcej )?nie (?:{_PL_DO}|\w{{2,}}(?:aj|ij|uj|ć))\b|{_PL_START}nigdy (?:w|bez|z|na"
            rf"|po|przed|¤)\b",
        ),
        RulePattern(
            "instruction",
            0.85,
            "zawsze",
            rf"{_PL_START}(?:zawsze (?:{_PL_DO}|\w{{2,}}ć|w|bez|z|na|po|przed|jako|¤)\b|{_PL_DO} (?:\w+ )?zawsze\b)"
            rf"|(?:^\W*|[,;:] ?)(?:[\w¤-]+ ){{1,4}}zawsze (?:w|bez|z|na|po|przed|jako|¤)\b",
        ),
        RulePattern(
            "instruction",
            0.65,
            "proszę",
            r"\b(?:żadnych|bez|tylko|zawsze|nigdy) (?!problem)[^.;:!?]{1,50}\bproszę\b|\bproszę (?:\w+ )?(?:żadnych"
            r"|zawsze|nigdy|bez|tylko)\b",
        ),
        RulePattern(
            "instruction", 0.7, "żadnych żadnego żadnej", rf"{_PL_START}żadn(?:ych|ego|ej) (?!problem|pomysł)\w"
        ),
        RulePattern(
            "instruction", 0.5, "nie", rf"{_PL_START}nie {_PL_DO}\b(?![^,.;:!?]*\b(?:teraz|jeszcze|dzisiaj|tego)\b)"
        ),
        RulePattern(
            "instruction",
            0.65,
            "wolno musi muszą może mogą trzeba zabronione zakazane",
            r"\bnie wolno\b|\b(?:musi|muszą|powinny|powinien) (?:zawsze|tylko)\b|\bjest (?:zabronione|zakazane)\b",
            "none",
        ),
        RulePattern("instruction", 0.5, "wolę", r"\bwolę (?!nie myśleć)", "none"),
        RulePattern(
            "constraint",
            0.85,
            "alergię alergia uczulony uczulona weganinem weganką wegetarianinem wegetarianką nietolerancję celiakię",
            r"\b(?:alergi[aęi]|uczulon[ya]|wegan\w+|wegetarian\w+|nietolerancj\w+|celiaki\w+)\b(?=[^?]*$)",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "jem piję palę je pije",
            r"\bnie (?:jem|piję|palę|jeżdżę)\b(?! (?:teraz|dzisiaj|jeszcze))",
            "none",
        ),
        RulePattern(
            "constraint",
            0.5,
            "najwyżej maksymalnie najpóźniej",
            r"\b(?:najwyżej|maksymalnie|najpóźniej) \w*\d",
            "clause",
        ),
    ),
)

TURKISH = Grammar(
    "tr",
    r"(?!)",
    (
        RulePattern(
            "instruction", 0.95, "bundan artık", r"\bbundan (?:sonra|böyle)\b(?![^.;!?]*(?:acağım|eceğim))", "none"
        ),
        RulePattern(
            "instruction",
            0.9,
            "asla sakın hiçbir kesinlikle",
            r"\b(?:asla|sakın|hiçbir zaman|kesinlikle)\b[^.;:!?]*\w(?:ma|me)(?:yın|yin|yınız|yiniz|yalım)?\W*$",
            "none",
        ),
        RulePattern(
            "instruction",
            0.8,
            "her daima hep",
            r"\b(?:her zaman|daima|hep)\b[^.;:!?]*\b(?:yaz|kullan|ver|ekle|koy|söyle|yap|gönder|konuş|cevapla|belirt"
            r"|başla|bitir|sor)(?:ın|in|un|ün|ınız|iniz|unuz|ünüz)?\W*$",
            "none",
        ),
        RulePattern(
            "instruction",
            0.5,
            "lütfen",
            r"\blütfen\b[^.;:!?]*\w(?:ma|me)(?:yın|yin|yınız|yiniz)?\W*$(?<!merak etme)(?<!etmeyin)",
            "none",
        ),
        RulePattern("instruction", 0.65, "yasak yasaktır", r"\byasak(?:tır)?\b", "none"),
        RulePattern("instruction", 0.5, "tercih", r"\btercih (?:ederim|ediyorum|ederiz)\b", "none"),
        RulePattern(
            "constraint",
            0.85,
            "alerjim alerjisi vejetaryenim veganım alerjik",
            r"\b(?:alerjim|alerjisi|alerjiğim|vejetaryenim|veganım)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "yemem yemiyorum içmem içmiyorum",
            r"\b(?:yemem|yemiyorum|içmem|içmiyorum|yiyemem|içemem)\b",
            "none",
        ),
    ),
)
