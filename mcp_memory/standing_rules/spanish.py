"""Standing rules in Spanish."""

from __future__ import annotations

from mcp_memory.standing_rules.grammar import Grammar, RulePattern

__all__ = ["SPANISH"]

_ES_START = r"(?:^\W*|[,;:(¡–—]\s*| - |\b(?:y|e|o|pero|and|but|así que|también|por favor|porfa|ah|oh|ok|vale|sí) )"
# The negative imperative and the subjunctive of what an assistant is asked to do.
_ES_DONT = (
    r"(?:uses?|usen|utilic\w+|pongas?|pongan|digas?|digan|hagas?|hagan|escribas?|escriban|mandes?|manden"
    r"|envíes?|incluyas?|menciones?"
    r"|llames?|traduzcas?|añadas?|cambies?|borres?|toques?|quites?|metas?|prometas?|recomiendes?|sugieras?"
    r"|propongas?|firmes?|repitas?"
    r"|compartas?|publiques?|edites?|corrijas?|inventes?|emplees?|contestes?|respondas?|hables?|cobres?"
    r"|compres?|reserves?|aceptes?"
    r"|asumas?|mezcles?|abrevies?|redondees?|vendas?|ofrezcas?|programes?|trates?|tutees?|saludes?|empieces?"
    r"|termines?|copies?|agendes?|programes?|confirmes?|invites?|cites?|quedes?|muestres?|abras?|resumas?)"
)
_ES_DO = (
    r"(?:usa|utiliza|pon|di|haz|escribe(?:me)?|manda|envía|incluye|menciona|llama|traduce|añade|firma"
    r"|contesta(?:me)?|responde(?:me)?|habla(?:me)?"
    r"|trata|redondea|empieza|termina|use|ponga|escriba|envíe|incluya|responda|conteste)"
)
_ES_NOW = r"(?:ahora|hoy|mañana|todavía|aún|esto|eso|aquí|esta|este|lo|ya)"
_ES_FUNCTION = r"(?:en|con|sin|de|al?|por|para|antes|después|más|menos|s[oó]lo|el|un|una|los|las|dos|ambos) "
_ES_NOT_VERBAL = (
    r"(?!(?:he|ha|has|hemos|han|había|hay|me|te|se|nos|lo|le|la \w+[éóí]\b|es|está|fue|era|digo|dije|llega)\b)"
)
_ES_DAY = (
    r"(?:(?:el |los )?(?:lunes|martes|miércoles|jueves|viernes|sábados?|domingos?)(?: y (?:lunes|martes"
    r"|miércoles|jueves|viernes|sábados?|domingos?))?|por la (?:mañana|tarde|noche)|(?:los )?fines de semana)"
)

_ES_IDIOM = r"(?:nada|eso|malo|nuevo|más|especial|que|de eso|importante|serio)"

SPANISH = Grammar(
    "es",
    r"\b(?:yo|ellas?|ellos|nosotr[oa]s|he|ha|hemos|han|hab[ií]a\w*|fui|fue|era[ns]?|estaba\w*|está|están|es"
    r"|son|soy|estoy|tengo|tiene"
    r"|me (?:gusta|da|pasa|va)|\w{2,}(?:aba|abas|aban|ó|aron|ieron|iste|aste))\b",
    (
        RulePattern(
            "instruction",
            0.95,
            "ahora adelante hoy futuro sucesivo",
            r"\b(?:a partir de (?:ahora|hoy|ya)|de (?:ahora|aquí|hoy) en adelante|desde (?:ahora|hoy) (?:en adelante"
            r"|quiero)|en lo sucesivo|en el futuro,? (?:por favor|no|siempre|usa))\b"
            r"(?! (?:voy|me voy|será|estoy|vamos))",
            "none",
        ),
        RulePattern(
            "instruction",
            0.9,
            "nunca jamás jamas",
            rf"{_ES_START}(?:nunca|jam[aá]s|nunca jamás) (?:(?:me|te|se|le|les|nos|lo|la|los|las) )?"
            rf"(?:{_ES_DONT}\b|\w{{2,}}[aei]r(?:l[aeo]s?|me|nos)?\b|¤|{_ES_NOT_VERBAL}(?:{_ES_FUNCTION}|\w+ (?:ni|o"
            rf"|y) \w+))",
        ),
        RulePattern(
            "instruction",
            0.85,
            "siempre",
            rf"{_ES_START}(?:{_ES_DO} siempre\b|siempre (?!que\b|lo mismo|la misma|el mismo|ha|es\b|está|fue|me\b"
            rf"|te\b|se\b|he\b|con(?:migo| mi)|a mi|en mi|de la misma)"
            rf"(?:{_ES_DO}\b|\w{{2,}}[aei]r\b|¤|{_ES_FUNCTION}))",
        ),
        RulePattern(
            "instruction",
            0.75,
            "siempre nunca jamás jamas",
            r"(?:^\W*|[,;:–—] ?|y )(?:(?:en|a|con|para|los|las|el|la|todos?|todas?"
            r"|mis?) )(?:[\w¤-]+ ){1,5}(?:siempre|nunca|jam[aá]s) (?:¤|(?:el código|en|con|sin|de|por|el|la|los"
            r"|las|un|una) )",
        ),
        RulePattern("instruction", 0.6, "siempre", r"(?:^|[,:;] )siempre[:.!]*$"),
        RulePattern(
            "instruction",
            0.6,
            "nada ningún ninguna ni",
            rf"{_ES_START}nada de (?!{_ES_IDIOM})[\w¤]|{_ES_START}nada (?:con|sin) \w",
        ),
        RulePattern(
            "instruction",
            0.7,
            "favor porfa porfavor",
            r"\b(?:siempre|nunca|nada de|ningún|ninguna|sin|s[oó]lo) [^.;:!?]{1,50}\b(?:por favor"
            r"|porfa(?:vor)?)\b|\b(?:por favor|porfa),? (?:siempre|nunca|nada de|ningún|ninguna|sin"
            r"|s[oó]lo)\b(?![^.;:!?]*\b(?:hoy|ahora)\b)",
            "none",
        ),
        RulePattern(
            "instruction",
            0.5,
            "no",
            rf"{_ES_START}no (?:(?:me|le|les|nos|lo|la|los|las|se) )?{_ES_DONT}\b(?! (?:lo|eso|esto"
            rf"|nada)\b)(?![^,.;:!?]*\b{_ES_NOW}\b)",
        ),
        RulePattern(
            "instruction",
            0.85,
            "no",
            r"\bno (?:(?:me|le|les|nos|lo|la|los|las) )?\w+ (?:nunca|jamás)\b(?=.*\b)(?<!sé nunca)",
            "before",
        ),
        RulePattern(
            "instruction",
            0.6,
            "sin",
            rf"(?:^\W*|[,;:] (?:y )?)sin (?!embargo|duda|problema|más|parar|querer|prisa|mí|ti|ella|él|saber|falta"
            rf"|contar|{_ES_IDIOM})[\w¤]+(?: [\w¤]+){{0,2}}(?:,? (?:por favor|porfa)|, (?:sin|y (?:sin|jamás|nunca"
            rf"|siempre)))\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.7,
            "quiero prefiero odio",
            r"\b(?:no quiero (?:que (?!te|pienses|se)|ver|ning)|quiero (?:siempre|que (?:siempre|nunca|todos?"
            r"|todas?))|odio que|detesto que)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.55,
            "todos todas",
            r"^\W*tod[oa]s l[oa]s [\w¤]+(?: [\w¤]+)? (?:en|con|sin) [\w¤]+(?: [\w¤]+){0,3}(?=\W*$|,)",
            "clause",
        ),
        RulePattern(
            "constraint", 0.7, "trabajo puedo", rf"\bno trabajo {_ES_DAY}|\blos \w+ no (?:puedo|trabajo)\b", "none"
        ),
        RulePattern("instruction", 0.5, "prefiero preferimos", r"\b(?:prefiero|preferimos)\b", "none"),
        RulePattern(
            "instruction",
            0.75,
            "debe deben debes hay",
            r"\b(?:debes?|deben|hay que|tienes? que|tienen que) (?:siempre|\w+ siempre)\b|\b(?:nunca"
            r"|jam[aá]s) (?:debes?|deben|se debe|hay que|puedes?|pueden)\b|\bno (?:se (?:puede|debe)n?|deben?"
            r"|está permitido)\b [^.;:!?]{0,20}\w+[aei]r\b",
        ),
        RulePattern(
            "instruction",
            0.6,
            "prohibido prohibida prohibidos prohibidas tabú obligatorio",
            r"\b(?:está[ns]?|queda[ns]?|es|son) (?:\w+ )?(?:prohibid[oa]s?|tabú|vetad[oa]s?|obligatori[oa]s?)\b"
            r"|^\W*prohibid[oa]s? ",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "tuteo tutear tutea tuteamos usted ustedes tratar trata",
            r"\b(?:tuteo|tuteamos|tutear|tutéa\w*)\b|\b(?:de|por) ustedes?\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "todo todos toda todas cada",
            r"\b(?:tod[oa]s?|cada) (?!vez|día|año|el día|el mundo sabe)[^.;:!?]{0,40}\b(?:debe|deben|tiene que"
            r"|tienen que|lleva|llevan|va en|van en|va con|van con)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.75,
            "cuando vez",
            rf"\b(?:cuando|cada vez que|siempre que) (?:me )?\w+s\b[^.!?]{{2,60}}, (?:por favor|siempre|nunca"
            rf"|{_ES_DO})\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.65,
            "solo sólo solamente únicamente",
            rf"{_ES_START}(?:{_ES_DO} (?:[\w¤]+ ){{0,3}})?(?:s[oó]lo|solamente|únicamente) (?:en|con|para|después"
            rf"|antes|por|de) \w+(?: \w+)?\W*$|{_ES_START}{_ES_DO} (?:s[oó]lo|solamente|únicamente)\b",
        ),
        RulePattern(
            "instruction",
            0.6,
            "llámame háblame contéstame respóndeme escríbeme contestame respondeme",
            rf"{_ES_START}(?:llámame (?!cuando|mañana|luego|si)|(?:háblame|contéstame|respóndeme|escríbeme"
            rf"|contestame|respondeme) (?:siempre |s[oó]lo )?(?:en|de|por) )",
        ),
        RulePattern(
            "instruction",
            0.8,
            "excepción excepciones regla norma",
            r"\bes (?:una |la )?(?:norma|regla)\b|\bsin excepci(?:ón|ones)\b|\b(?:la|mi|nuestra) (?:regla"
            r"|norma) es\b|\bpor (?:norma|regla general|principio)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.85,
            "alérgica alérgico alérgicos alergia alergias alergica alergico intolerante intolerancia vegano vegana"
            " vegetariano vegetariana celíaco celíaca celiaca celiaco diabético diabética",
            r"\b(?:soy|es|son|somos|tengo|tiene|tienen)\b[^.;!?]{0,40}\b(?:al[eé]rgic[oa]s?|alergias?|intoleran\w+"
            r"|vegan[oa]s?|vegetarian[oa]s?|cel[ií]ac[oa]s?|diab[eé]tic[oa]s?)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "como bebo fumo tomo conduzco come bebe toma",
            r"\b(?:no|nunca) (?:como|bebo|fumo|tomo|conduzco|tolero|pruebo|come|bebe) (?!nada\b|más\b|est|el |la "
            r"|mucho|siempre|ahora|que\b|antes|en\b|así|tú|un[ao]?\b)\w+|\bno (?:fumo|bebo|conduzco)\W*$",
            "none",
        ),
        RulePattern(
            "constraint",
            0.7,
            "puedo puede podemos pueden",
            r"\bno (?:puedo|puede|podemos|pueden) (?:comer|beber|tomar|arrodillar\w*|levantar|cargar|conducir|volar"
            r"|fumar|agachar\w*|trabajar)\b(?![^.;!?]*\b(?:hoy|más|mañana)\b)",
            "none",
        ),
        RulePattern(
            "constraint",
            0.8,
            "nunca no",
            rf"\b{_ES_DAY},? (?:nunca|jamás)\b|\b(?:nunca|jamás) (?:{_ES_DAY}|antes de las|después de las)",
        ),
        RulePattern("constraint", 0.5, "solo sólo", rf"\bs[oó]lo {_ES_DAY}\s*(?:[,.;!)]|$)", "none"),
        RulePattern(
            "constraint",
            0.5,
            "máximo tardar más mucho",
            r"\b(?:como (?:máximo|mucho)|máximo|a más tardar|no más de)\b[^.;:!?]{0,10}\d"
            r"|\d[^.;:!?]{0,30}\b(?:como (?:máximo|mucho)|máximo|a más tardar|ni (?:un[ao]? \w+ )?más)\b",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.6,
            "límite limite máximo tope presupuesto",
            r"\b(?:mi|nuestro) (?:l[ií]mite|máximo|tope|presupuesto) (?:es|está)\b",
            "none",
        ),
    ),
)
