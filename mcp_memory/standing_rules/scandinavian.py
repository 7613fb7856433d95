"""Standing rules in Swedish, Danish and Norwegian."""

from __future__ import annotations

from mcp_memory.standing_rules.grammar import Grammar, RulePattern

__all__ = ["SCANDINAVIAN"]

_NORDIC_START = (
    r"(?:^\W*|[,;:(–—]\s*| - |\b(?:och|og|men|eller|så|också|også|ja|ok|snälla|vær så snill|venligst|gärna|helst) )"
)
_NORDIC_DO = (
    r"(?:använd|skriv|säg|svara|svar|sett|sätt|lägg|skicka|send|nämn|nevn|nævn|kalla|kall|kald|lova|lov|brug"
    r"|bruk|sig|si|sæt|legg|læg"
    r"|gör|gjør|gør|ta|tag|fråga|spør|spørg|ändra|endre|ændr|rund|avrunda|avslutt|avsluta|börja|begynn"
    r"|begynd|ha|hav|test|testa)"
)
_NORDIC_PATTERNS = (
    RulePattern(
        "instruction",
        0.95,
        "nu nå fremover framöver fortsättningen fremtiden framtiden heretter fremadrettet",
        r"\b(?:från och med nu|från nu|fra nu af|fra nå av|fra og med nå|fra og med nu|fremover|framöver"
        r"|i fortsättningen|i fremtiden"
        r"|heretter|fremadrettet)\b(?! (?:ska|skal|vil|kommer) jeg| ska jag)",
        "none",
    ),
    RulePattern(
        "instruction",
        0.9,
        "aldrig aldri",
        rf"{_NORDIC_START}(?:{_NORDIC_DO} (?:[\w¤-]+ )?aldri(?:g)?\b|aldrig? (?!mer\b|mere\b|igen|igjen|i livet"
        rf"|hört|hørt|sett\b|set\b|varit|vært|været|har|förr)[\w¤])",
    ),
    RulePattern(
        "instruction",
        0.85,
        "alltid altid",
        rf"{_NORDIC_START}(?:{_NORDIC_DO} (?:[\w¤-]+ )?(?:alltid|altid)\b|(?:alltid|altid) (?!lika|så|trevlig"
        rf"|hyggelig|bra|godt|rolig)[\w¤])",
    ),
    RulePattern(
        "instruction",
        0.75,
        "alltid altid aldrig aldri",
        r"(?:^\W*|[,;:–—] ?)(?:[\w¤-]+ ){1,4}(?:alltid|altid|aldrig|aldri) (?:(?:i|med|utan|uten|uden|som|på"
        r"|före|efter|etter|før|inkl\w*|exkl\w*|till|til) |¤)",
    ),
    RulePattern(
        "instruction",
        0.7,
        "inga inget ingen ingen",
        r"\b(?:inga|ingen|inget|intet|ikke noen) (?!problem|aning|anelse|idé|ide\b|fara|fare\b|orsak|årsag"
        r"|stress|tid\b|vet\b|som\b|av\b|kan\b|har\b)[\w¤][^.;:!?]{1,50}"
        r"\b(?:tack|takk|tak|snälla|vær så snill)\b|\b(?:snälla|vær så snill|vennligst|venligst) (?:inga|ingen"
        r"|inget|aldrig|aldri|alltid|altid|bare|bara|kun)\b",
    ),
    RulePattern(
        "instruction",
        0.7,
        "får må skal ska måste",
        r"\b(?:får|må|skal|ska|måste) (?!jag|jeg|vi|han|hon|hun|det)(?:[\w¤-]+ ){0,4}?(?:alltid|altid|aldrig"
        r"|aldri|bara|bare|kun)\b",
    ),
    RulePattern(
        "instruction",
        0.6,
        "förbjudet förbjudna forbudt forbudne tabu",
        r"\b(?:är|er) (?:[\w¤-]+ )?(?:förbjud\w+|forbudt|forbudne|tabu)\b",
        "none",
    ),
    RulePattern(
        "instruction",
        0.5,
        "föredrar foretrækker foretrekker",
        r"\b(?:jag föredrar|jeg foretrækker|jeg foretrekker)\b",
        "none",
    ),
    RulePattern(
        "instruction", 0.6, "kalla kall kald", rf"{_NORDIC_START}(?:kalla mig|kall meg|kald mig) (?!inte|ikke)"
    ),
    RulePattern(
        "constraint",
        0.85,
        "allergisk allergi vegetarian vegetar vegan veganer laktosintolerant laktoseintolerant glutenintolerant"
        " celiaki cøliaki diabetiker nötallergi nøtteallergi nøddeallergi",
        r"\b(?:är|er|har)\b[^.;!?]{0,30}\b(?:\w*allergisk|\w*allergi|vegetar\w*|vegan\w*|\w*intolerant|celiaki"
        r"|cøliaki|diabetiker)\b",
        "none",
    ),
    RulePattern(
        "constraint",
        0.75,
        "äter spiser dricker drikker tål tåler röker røyker ryger",
        r"\b(?:jag|jeg|han|hon|hun) (?:äter|spiser|dricker|drikker|tål|tåler|röker|røyker|ryger) (?:inte|ikke"
        r"|aldrig|aldri|inga|inget|ingen)\b",
        "none",
    ),
    RulePattern(
        "constraint",
        0.8,
        "aldrig aldri",
        r"\b(?:mån|tis|ons|tors|fre|lör|sön|man|tirs|lør|søn)da(?:g|ger|gar|ge|gene)(?:ar|er)? (?:aldrig|aldri)\b",
    ),
    RulePattern(
        "constraint",
        0.5,
        "högst höchst maks max højst senast senest",
        r"\b(?:högst|maks|max|højst|senast|senest)(?: kl)? \d",
        "clause",
    ),
)
_NORDIC_STORY = (
    r"\b(?:jag|jeg|han|hon|hun|vi|de|man|det|har|hade|hadde|havde|var|är|er|blev|ble|blir|bliver|kom|kommer"
    r"|gick|gikk|kan|kunde|kunne"
    r"|vill|vil|ville|som)\b"
)
SCANDINAVIAN = Grammar("sv da no", _NORDIC_STORY, _NORDIC_PATTERNS)
