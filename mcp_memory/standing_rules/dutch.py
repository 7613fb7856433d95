"""Standing rules in Dutch."""

from __future__ import annotations

from mcp_memory.standing_rules.grammar import Grammar, RulePattern

__all__ = ["DUTCH"]

_NL_START = (
    r"(?:^\W*|[,;:(–—]\s*| - |\b(?:en|maar|dus|of|dan|ook|graag|oh|ja|ok|oké|trouwens|alsjeblieft|alstublieft|aub) )"
)
_NL_DO = (
    r"(?:gebruik|schrijf|zet|noem|zeg|stuur|antwoord|spreek|maak|vermeld|vraag|voeg|neem|geef|plan|vertaal"
    r"|noteer|beloof|rond|doe"
    r"|test|commit|bewaar|verander|wijzig|plaats|houd|hou|begin|eindig|sluit|onderteken|bel|mail|koop|kies"
    r"|verwijder)(?:t|en)?"
)
_NL_IDIOM = (
    r"(?:probleem|idee|zorgen|dank|punt|zin\b|tijd\b|haast|stress|paniek|twijfel|wonder|goed|moeite|antwoord"
    r"|flauw|kans|reden)"
)

_NL_DAY = (
    r"(?:(?:op )?(?:maan|dins|woens|donder|vrij|zater|zon)dag(?:en|s|ochtend|middag|avond)?|'s \w+"
    r"|in het weekend|weekends)"
)


DUTCH = Grammar(
    "nl",
    r"\b(?:ik|hij|zij|ze|het|wij|we|men|er|heb|heeft|hebben|had|hadden|was|waren|is|zijn|ben|werd\w*|wordt"
    r"|ging|kwam|komt|kan|kon"
    r"|wil|wilde|moest|weet|wist|lacht|werkt|gaat|lukt|ge(?!en|bruik|woon|leden|val|heel|bied|ef\b|luid"
    r"|zicht|sprek)\w{3,}[dtn])\b",
    (
        RulePattern(
            "instruction",
            0.95,
            "nu voortaan vervolg heden",
            r"\b(?:vanaf (?:nu|heden|vandaag)|voortaan|in het vervolg|van nu af aan)\b(?! (?:ga|ben|zal|heb|wordt"
            r"|is) (?:ik|het|hij|ze)?)",
            "none",
        ),
        RulePattern(
            "instruction",
            0.9,
            "nooit gebruik schrijf",
            rf"{_NL_START}(?:{_NL_DO} (?:(?!ik|hij)[\w¤-]+ ){{0,4}}?nooit\b|(?<!nog )nooit (?!meer\b|weer\b|eerder"
            rf"|van\b|gedacht)[\w¤-])",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.85,
            "altijd steeds",
            rf"{_NL_START}(?:{_NL_DO} (?:(?!ik|hij)[\w¤-]+ ){{0,4}}?(?:altijd|steeds)\b(?! al\b)|altijd (?!(?:het"
            rf"|de)zelfde|al\b|maar\b|weer\b|leuk|fijn|goed|nog\b)[\w¤-])",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.8,
            "altijd nooit",
            r"(?:^\W*|[,;:–—] ?|en )(?:(?!dat|die|wie)[\w¤-]+ ){1,5}(?<!nog )(?:altijd|nooit) (?:(?:in|met|zonder"
            r"|als|op|voor|na|per|via|onder|aan|bij"
            r"|uit|van|inclusief|exclusief|de|het|een|twee|beide|klein|eerst) |¤|(?:[\w¤-]+ ){0,4}\w{3,}en\W*$)",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.7,
            "geen",
            rf"{_NL_START}geen (?!{_NL_IDIOM})[\w¤][^.;:!?]{{1,50}}\b(?:graag|alsjeblieft|alstublieft|aub|svp"
            rf"|a\.u\.b)\b"
            rf"|\b(?:graag|alsjeblieft|alstublieft|liever) (?:\w+ )?geen (?!{_NL_IDIOM})\w"
            rf"|{_NL_START}geen (?!{_NL_IDIOM})[\w¤-]+(?: [\w¤-]+){{0,4}}(?:,|,? en|,? of) (?:dus )?(?:geen"
            rf"|nooit) (?!{_NL_IDIOM})",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.6,
            "geen",
            rf"{_NL_START}geen (?!{_NL_IDIOM})[\w¤-]+ (?:[\w¤-]+ ){{0,3}}?(?:(?:in|op|bij|zonder|voor|onder|aan|met"
            rf"|zolang|tot) |\w{{4,}}en\W*$)",
            "clause",
        ),
        RulePattern("instruction", 0.4, "geen", rf"^\W*(?:en |maar )?geen (?!{_NL_IDIOM})[\w¤-]+(?: [\w¤-]+)?\W*$"),
        RulePattern(
            "instruction",
            0.7,
            "graag alsjeblieft alstublieft aub svp",
            r"\b(?:altijd|nooit|alleen|uitsluitend) [^.;:!?]{1,40}\b(?:graag|alsjeblieft|alstublieft|aub|svp)\b"
            r"|\bgraag (?:altijd|alleen|voortaan|nooit)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.7,
            "mag mogen moet moeten",
            r"\b(?:mag|mogen|moet|moeten) (?!ik|we|wij|hij|ze|het)(?:[\w¤-]+ ){0,6}?(?:nooit|altijd|alleen"
            r"|uitsluitend|geen)\b",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.6,
            "alle elke elk ieder iedere alles",
            r"\b(?:alle|alles|elke?|iedere?) (?!dag|keer|week|jaar|maand)[^.;:!?]{0,40}\b(?:moet|moeten|krijgt"
            r"|krijgen|komt|hoort|mag)\b",
            "none",
        ),
        RulePattern(
            "instruction", 0.45, "geen", rf"^\W*(?:en |maar )?geen (?!{_NL_IDIOM})[\w¤-]+(?: [\w¤-]+)?,", "clause"
        ),
        RulePattern(
            "instruction",
            0.55,
            "alle",
            r"^\W*alle [\w¤-]+(?: [\w¤-]+)? (?:in|met|zonder|als|op|per) [\w¤-]+(?: [\w¤-]+){0,3}(?=\W*$|,)",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.7,
            "werk kan",
            rf"\bik werk niet op {_NL_DAY}|\b{_NL_DAY} kan (?:ik|hij|ze|zij) (?:nooit|niet)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "verboden taboe verplicht",
            r"\b(?:is|zijn|blijft|blijven) (?:[\w¤-]+ )?(?:streng )?(?:verboden|taboe|uit den boze|verplicht"
            r"|niet toegestaan)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.65,
            "ik",
            r"\bik (?:wil|heb liever|verwacht|hoef) (?:\w+ )?(?:geen (?!ruzie|zorgen)|nooit|altijd|alleen|alle"
            r"|elke)\b|\bik (?:geef de voorkeur|heb een hekel aan als|haat het als)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "noem antwoord schrijf",
            rf"{_NL_START}(?:noem me (?!niet|een)|(?:antwoord|schrijf) (?:me |mij )?(?:altijd |graag "
            rf"|alleen )?in het \w+)",
        ),
        RulePattern(
            "instruction",
            0.7,
            "tutoyeren vousvoyeren vorm je jij u",
            r"\b(?:tutoyeren|vousvoyeren|u-vorm|je-vorm)\b|\b(?:met|altijd) [\"'¤]?(?:u|je)[\"'¤]? aan(?:spreken"
            r"|schrijven)",
            "none",
        ),
        RulePattern(
            "instruction",
            0.75,
            "als wanneer telkens",
            r"\b(?:als|wanneer|telkens als) je (?!tijd|kunt|wilt|klaar|zin)[^.!?]{2,60}, (?:graag|altijd|nooit"
            r"|dan graag|zet|gebruik|schrijf|geef|noem)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.8,
            "uitzondering uitzonderingen regel",
            r"\bzonder uitzondering\b|\bdat is (?:een |de |onze )?regel\b|\bde regel is\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.85,
            "allergisch allergie intolerant vegetariër vegetarisch vegan veganist coeliakie glutenintolerant"
            " lactose-intolerant"
            " notenallergie diabetes glutenallergie intolerantie",
            r"\b(?:ben|is|zijn|heb|heeft|eet)\b[^.;!?]{0,40}\b[\w-]*(?:allergisch|allergie|intoleran\w+|vegetari\w+"
            r"|vegan\w*|coeliakie|diabetes)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "eet drink rook rijd vlieg drinkt",
            r"\b(?:ik (?:eet|drink|rook|verdraag)|\w+ (?:eet|drinkt)) (?:\w+ )?(?:geen|nooit)\b|\bik (?:rook|drink"
            r"|vlieg|rijd) niet\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.7,
            "kan mag",
            r"\b(?:kan|mag) (?:\w+ ){0,3}?(?:niet|geen|nooit|niets)\b[^.;!?]{0,30}\b(?:eten|drinken|knielen|tillen"
            r"|bukken|dragen|vliegen|klimmen|roken|werken)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.8,
            "nooit niet",
            rf"\b{_NL_DAY} (?:nooit|niet)\s*(?:[,.;!]|$)|\bnooit (?:voor|na|op) (?:{_NL_DAY}|\d|acht|negen|tien"
            rf"|twaalf)",
            "clause",
        ),
        RulePattern("constraint", 0.5, "alleen", rf"\balleen {_NL_DAY}(?: en {_NL_DAY})?\s*(?:[,.;!)]|$)", "none"),
        RulePattern(
            "constraint",
            0.5,
            "hoogstens maximaal uiterlijk meer langer later",
            r"\b(?:hoogstens|maximaal|uiterlijk(?: om)?|niet meer dan) (?:\d|twee|drie|vier|vijf|zes|tien|één|een\b)"
            r"|\d[^.;:!?]{0,30}(?:en |, )(?:niet|geen \w+) (?:meer|langer|later)\b",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.6,
            "limiet grens maximum budget",
            r"\b(?:mijn|ons|onze) (?:limiet|grens|maximum|budget) (?:is|ligt)\b",
            "none",
        ),
    ),
)
