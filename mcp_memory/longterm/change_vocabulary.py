"""Words of change, and names of months, weekdays, units and relations, one entry a language or a name.

Stems, each matched at the start of a word in scripts with spaces, anywhere in the others. Tables, no code: a language
is added by a line in each.
"""

from __future__ import annotations

__all__ = ["CHANGED", "CURRENCIES", "FORMER", "FROM", "LIGHT", "MONTHS", "RELATIONS", "TO", "UNITS", "WEEKDAYS"]

CHANGED = {
    "en": (
        "now|no longer|not any ?more|any more|anymore|instead|moved|moves|moving|switched|switching|switches|"
        "changed|changes|change|postponed|delayed|rescheduled|pushed|brought forward|actually|correction|"
        "corrected|after all|these days|new|updated|upgraded|migrated|replaced|replaces|replace|left|swapped|"
        "from now on|has joined|went up|raised|rose|increased|decreased|lowered|cut to|revised|scrap|rather than|"
        "turns out|stopped"
    ),
    "de": (
        "jetzt|nun|nunmehr|inzwischen|mittlerweile|nicht mehr|doch|statt|anstatt|stattdessen|verschoben|verlegt|"
        "verschieb\\w*|geändert|ändert|änderung|neue?[nrsm]?|neuerdings|umgezogen|gezogen|gewechselt|umgestellt|"
        "ab sofort|korrektur|korrigier\\w*|ersetzt|erhöht|gesenkt|gestiegen|künftig|vorverlegt|aktualisiert"
    ),
    "fr": (
        "maintenant|désormais|finalement|plutôt|au lieu|à la place|ne \\w+ plus|n'\\w+ plus|reporté\\w*|"
        "déplacé\\w*|décalé\\w*|avancé\\w*|changé\\w*|change|passe à|passons|passé à|déménag\\w*|correction|"
        "remplac\\w*|nouve\\w+|nouvel\\w*|en fait|augment\\w*|dorénavant"
    ),
    "es": (
        "ahora|ya no|ya está|ya estamos|en vez|en lugar|finalmente|al final|cambi\\w+|mov\\w+|aplaz\\w+|"
        "pospuest\\w*|pospon\\w*|adelant\\w+|traslad\\w+|retras\\w+|mudad\\w+|mudé|mudamos|pasa al|pasa a|pasó a|"
        "pasamos a|nuev\\w+|corrección|en realidad|sustitu\\w+|reemplaz\\w+|subi[óe]\\w*|sube|baj[óa]"
    ),
    "it": (
        "adesso|ora|ormai|non più|non \\w+ più|invece|spostat\\w+|rimandat\\w+|rinviat\\w+|anticipat\\w+|"
        "cambi\\w+|trasferit\\w+|traslocat\\w+|passat\\w+ a|passiamo|nuov\\w+|alla fine|in realtà|correzione|"
        "sostituit\\w+|salit\\w+|aumentat\\w+|sces\\w+"
    ),
    "pt": (
        "agora|já não|não mais|em vez|ao invés|remarcad\\w+|adiad\\w+|antecipad\\w+|mud\\w+|passou|passa para|"
        "fica para|ficou para|transferid\\w+|nov[oa]s?|na verdade|afinal|correção|substitu\\w+|trocad\\w+|"
        "troquei|trocamos|subiu|aumentou|baixou"
    ),
    "nl": (
        "nu|niet meer|niet langer|in plaats|toch|verplaatst|verschoven|verzet|uitgesteld|vervroegd|gewijzigd|"
        "veranderd|wordt nu|nieuwe?|verhuisd|overgestapt|eigenlijk|voortaan|correctie|vervangen|verhoogd|"
        "gestegen|inmiddels|tegenwoordig"
    ),
    "ru": (
        "теперь|больше не|уже не|вместо|перен[её]с\\w*|перенос\\w*|сдвину\\w+|перее\\w+|изменил\\w*|поменял\\w*|"
        "сменил\\w*|нов\\w+|на самом деле|исправл\\w+|заменил\\w*|перешл\\w+|перешёл|отложил\\w*|повысил\\w*|"
        "подорожал\\w*|сейчас"
    ),
    "pl": (
        "teraz|już nie|zamiast|przeniesion\\w+|przesunięt\\w+|przełożon\\w+|zmieni\\w+|now[aeyi]\\w*|jednak|"
        "przeprowadzi\\w+|korekta"
    ),
    "tr": "artık|şimdi|yerine|değişti\\w*|ertelendi|taşındı\\w*|taşındım|yeni|aslında|alındı",
    "sv": "numera|inte längre|istället|flyttat\\w*|flyttad\\w*|ändrat\\w*|ändrad\\w*|ny|nya|nytt|egentligen|bytt",
    "zh": (
        "改到|改成|改为|改為|改在|改用|换成|換成|换了|換了|换到|推迟|推遲|延期|提前到|现在|現在|如今|不再|不是|"
        "搬到|搬去|搬家|更正|其实|調整|调整|涨到|漲到|降到|升级|升級|迁移到|新的|调到|跳槽"
    ),
    "ja": (
        "変更|変わ|変え|になりました|今は|今では|現在は|延期|前倒し|引っ越し|引越し|移転|ではなく|じゃなくて|"
        "やめて|代わりに|切り替え|乗り換え|転職|新しい|訂正|実は|移行|値上げ|もう"
    ),
    "ko": (
        "이제|변경|바뀌|바꿨|바꾸|옮겼|옮기|옮겨|이사|연기|미뤄|당겨|더 이상|대신|아니라|새로|새 |정정|사실은|"
        "지금은|이직|올랐|전환"
    ),
}
"""Words that say that something is otherwise than before."""

FORMER = (
    "not|no longer|isn't|instead of|rather than|used to be|formerly|previously|where it says|replaces|nicht|"
    "nicht mehr|statt|anstatt|bisher|vorher|früher|anstelle von|pas|au lieu de|plutôt que|auparavant|ya no|"
    "en vez de|en lugar de|antes|non|non più|invece di|invece del|anziché|já não|em vez de|ao invés de|niet|"
    "niet meer|in plaats van|не|вместо|раньше|zamiast|inte|istället för|不是|不再是|原来是|原定|而不是|元は|"
    "以前は|원래|이전"
)
"""Words right before a value that no longer holds."""

FROM = "from|von|vom|de|del|du|do|da|dal|van|с|z|从|從"
"""Words before the first value of "moved from X to Y"."""

TO = "to|auf|zu|nach|al|a|au|à|para|per|naar|на|do|till|改到|改成|到"

MONTHS = (
    "jan|januar|january|janvier|enero|ene|gennaio|gen|janeiro|januari|январ|styczeń|stycznia|ocak",
    "feb|februar|february|février|fevrier|fév|febrero|febbraio|fevereiro|fev|februari|феврал|lutego|şubat",
    "mar|march|märz|maerz|mars|marzo|março|maart|mrt|март|marca|mart",
    "apr|april|avril|avr|abril|abr|aprile|апрел|kwietnia|nisan",
    "may|mai|mayo|maggio|mag|maio|mei|мая|май|maja|mayıs",
    "jun|june|juni|juin|junio|giugno|giu|junho|июн|czerwca|haziran",
    "jul|july|juli|juillet|julio|luglio|lug|julho|июл|lipca|temmuz",
    "aug|august|août|aout|agosto|ago|augustus|август|sierpnia|ağustos",
    "sep|sept|september|septembre|septiembre|settembre|set|setembro|сентябр|września|eylül",
    "oct|october|oktober|okt|octobre|octubre|ottobre|ott|outubro|out|октябр|października|ekim",
    "nov|november|novembre|noviembre|novembro|ноябр|listopada|kasım",
    "dec|december|dezember|dez|décembre|dec|diciembre|dic|dicembre|dezembro|декабр|grudnia|aralık",
)

WEEKDAYS = (
    (
        "monday|mondays|montag|montags|lundi|lunes|lunedì|lunedi|segunda-feira|segunda|maandag|понедельник|"
        "poniedziałek|pazartesi|周一|星期一|週一|月曜|월요일"
    ),
    (
        "tuesday|tuesdays|dienstag|dienstags|mardi|martes|martedì|martedi|terça-feira|terça|dinsdag|вторник|"
        "wtorek|salı|周二|星期二|週二|火曜|화요일"
    ),
    (
        "wednesday|wednesdays|mittwoch|mittwochs|mercredi|miércoles|mercoledì|quarta-feira|quarta|woensdag|среда|"
        "среду|środa|środę|çarşamba|周三|星期三|週三|水曜|수요일"
    ),
    (
        "thursday|thursdays|donnerstag|donnerstags|jeudi|jueves|giovedì|quinta-feira|quinta|donderdag|четверг|"
        "czwartek|perşembe|周四|星期四|週四|木曜|목요일"
    ),
    (
        "friday|fridays|freitag|freitags|vendredi|viernes|venerdì|sexta-feira|sexta|vrijdag|пятница|пятницу|"
        "piątek|cuma|周五|星期五|週五|金曜|금요일"
    ),
    (
        "saturday|saturdays|samstag|samstags|sonnabend|samedi|sábado|sabato|zaterdag|суббота|субботу|sobota|"
        "sobotę|cumartesi|周六|星期六|週六|土曜|토요일"
    ),
    (
        "sunday|sundays|sonntag|sonntags|dimanche|domingo|domenica|zondag|воскресенье|niedziela|niedzielę|pazar|"
        "周日|星期日|星期天|週日|日曜|일요일"
    ),
)

CURRENCIES = {
    "eur": "€|eur|euros?|евро",
    "usd": "$|usd|dollars?|dólares|долл\\w*|美元|ドル|달러",
    "gbp": "£|gbp|pounds?|pfund",
    "rub": "₽|rub|руб\\w*",
    "brl": "r\\$|brl|reais",
    "cny": "元|块|塊|rmb|cny|人民币",
    "jpy": "円|¥|jpy|yen",
    "krw": "원|₩|krw",
    "chf": "chf|franken|francs?",
    "pln": "zł|złotych|pln",
}

UNITS = {
    "%": "%|percent|per cent|prozent|por ciento|pour cent|процент\\w*",
    "km": "km|kilomet\\w*|公里",
    "m": "m|met(?:er|re)s?|metros?|米",
    "cm": "cm",
    "mm": "mm",
    "foot": "foot|feet|ft",
    "kg": "kg|kilos?|公斤|キロ",
    "g": "g|grams?|gramm|гр",
    "mg": "mg",
    "l": "l|lit(?:er|re)s?|litros?",
    "ml": "ml",
    "gb": "gb",
    "mb": "mb",
    "tb": "tb",
    "m2": "m²|m2|qm|sqm",
    "minute": "min|minutes?|minuten|minutos?|minuti|минут\\w*|分钟|分鐘|分間",
    "hour": "hours?|hrs?|stunden?|heures?|horas?|ore|uren|час\\w*|小时|小時|時間|시간",
    "day": "days?|tagen?|tage|jours?|días?|dias?|giorni|dagen|дн\\w*|天|日間",
    "week": "weeks?|wochen?|semaines?|semanas?|settiman\\w+|weken|недел\\w*|周间|週間",
    "month": "months?|monate?n?|mois|mes|meses|mesi|maanden|месяц\\w*|个月|ヶ月|か月",
    "year": "years?|jahren?|jahre|ans|années|años|anos|anni|jaar|лет|год\\w*|岁|歳|年",
    "degree": "°c|°f|°|degrees?|grad",
}
"""Amounts of one unit are compared with each other only."""

RELATIONS = {
    "home": (
        "lives?|living|moved to|moved|relocated|resides?|wohn\\w*|gezogen|umgezogen|ziehe|vivo|vive|viven|"
        "vivimos|vivem|viv[ií]a\\w*|mudad[oa]s?|mudé|mudamos|habit\\w+|déménag\\w+|abit\\w+|trasferit\\w+|"
        "mor[oa]|moramos|mudou|mudei|woon\\w*|verhuisd|жив[уеё]\\w*|перее\\w+|mieszka\\w*|住|搬到|引っ越|살"
    ),
    "job": (
        "work at|works at|work for|works for|works as|employer|joined|arbeite\\w*|arbeitgeber|trabaj[oa]\\w*|"
        "travaill\\w+|lavor[oa]\\w*|trabalh\\w+|werk|werkt|работа\\w*|pracuj\\w*|工作|上班|跳槽|入职|働|勤め|"
        "転職|다니|이직"
    ),
    "tool": (
        "use|uses|using|run on|runs on|running on|switched to|upgraded|upgrade|updated|hosted|"
        "migrated|nutz\\w+|benutz\\w+|verwend\\w+|"
        "hosten|gehostet|läuft auf|usamos|uso|utilis\\w+|usiamo|girano|draait|gebruik\\w*|использу\\w+|używa\\w*|"
        "用|使って|사용|database|datenbank|数据库"
    ),
    "price": (
        "costs?|price|prices|kostet|kosten|preis|vale|cuesta|precio|coûte|tarif|prix|costa|prezzo|custa|preço|"
        "стоит|цена|pay|pays|paid|bezahl\\w*|zahl\\w*|pag\\w+|betal\\w+|值|价格|値段|料金"
    ),
    "rent": "rent|miete|\\w+miete|huur|loyer|alquiler|affitto|aluguel|renda|аренд\\w*|czynsz|kira|hyra|房租|家賃|월세",
    "start": (
        "starts?|begins?|starting|beginnt|beginn|startet|start|comienza|empieza|commence|début|comincia|inizia|"
        "começa|begint|начина\\w+|начал\\w+|kickoff|launch|开始|始ま|시작"
    ),
    "open": (
        "open|opens|opening|öffn\\w*|eröffn\\w*|ouvr\\w+|ouvert\\w*|abre|abrir|abrimos|apertura|apre|apriamo|"
        "abertura|openen|opent|opening|откры\\w+|开业|开门|開店|オープン|개업"
    ),
    "due": "due|deadline|abgabe\\w*|frist|fällig|plazo|prazo|scadenza|échéance|срок|截止|締め切り|締切|마감",
}
"""Relations, in many languages: "lives in Porto" and "moved to Leeds" are both `home`."""

LIGHT = (
    "hemos habéis han abbiamo avete hanno temos têm avons ont soll sollen sollte fürs ins ans beim "
    "should shall debe deve doit moet recently lately kürzlich récemment recientemente recentemente onlangs "
    "want wants willst will möchte quiere quieres veux vuoi quer wil is are was were be been has have had "
    "will get got gets take takes took put go goes went make made do does did also still only please okay ok "
    "yes one two ist sind sei liegt bleibt bitte wird werden sich est sont es son está están è sono fica são "
    "wordt worden zijn date datum fecha day tag día jour giorno dia dag time uhr hora heure ora o'clock hour "
    "um at on per pro por par month monat mes mois mese mês maand exactly same about just back last night"
)
"""Words that say nothing about a slot, in addition to the function words."""
