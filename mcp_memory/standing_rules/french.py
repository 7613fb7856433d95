"""Standing rules in French."""

from __future__ import annotations

from mcp_memory.standing_rules.grammar import Grammar, RulePattern

__all__ = ["FRENCH"]

_FR_START = (
    r"(?:^\W*|[,;:(–—]\s*| - |\b(?:et|ou|mais|donc|aussi|puis|stp|svp|s'il (?:te|vous) plaît|surtout|ah|oh|ok|oui) )"
)
_FR_NOW = r"(?:maintenant|aujourd'hui|demain|encore|ça|cela|ici|ce|cette|tout de suite|l[ae])"
_FR_DO = (
    r"(?:utilise|mets|met|écris|dis|fais|envoie|inclus|traduis|ajoute|signe|réponds|parle|appelle|garde"
    r"|indique|précise|commence|termine|arrondis|vérifie|cite|note|nomme|laisse|demande|prends|donne|place"
    r"|\w{3,}ez)(?:-(?:moi|les|le|la|lui|leur|y))?"
)
_FR_FUNCTION = (
    r"(?:en|avec|sans|de|d'|du|des|à|au|aux|par|pour|avant|après|plus de|moins de|le|la|les|un|une|l'|deux|sur|dans)"
)
_FR_IDIOM = (
    r"(?:problème|soucis?|quoi|panique|chance|stress|nouvelles?|réponse|doute|raison|idée|tout|temps|mal\b"
    r"|bol\b|place|question|différence|surprise|regret|besoin|mieux|mon|ma|chez|là)"
)

_FR_DAY = (
    r"(?:(?:le |les )?(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)s?|le (?:matin|soir|week-end)"
    r"|l'après-midi)"
)


FRENCH = Grammar(
    "fr",
    r"\b(?:je|j'\w*|il|elle|ils|elles|nous|on|ça|c'est|c'était|qui|ai|as|a|ont|avait|avais|était|étais|est"
    r"|sont|suis|fut|serait|\w{3,}(?:ait|aient|aient))\b",
    (
        RulePattern(
            "instruction",
            0.95,
            "maintenant désormais dorénavant avenir aujourd'hui aujourd présent",
            r"\b(?:à partir (?:de maintenant|d'aujourd'hui|de (?:ce jour|là))|désormais|dorénavant|dès (?:maintenant"
            r"|à présent|aujourd'hui)|à l'avenir)\b(?!,? (?:je (?:vais|suis|serai|ferai|me|peux)|j'ai|il (?:est"
            r"|sera)|elle))",
            "none",
        ),
        RulePattern(
            "instruction",
            0.9,
            "jamais",
            rf"{_FR_START}n(?:e |')(?:(?:me|nous|les?|la|l'|lui|leur|y) ?)?(?:jamais \w+|(?:\w+ )?[\w-]+ jamais\b)"
            rf"|{_FR_START}jamais (?!je|vu|eu|été|entendu|plus|deux sans|de la vie|su|dit|rien|il|elle"
            rf"|on)(?:\w{{2,}}(?:er|ir|re)\b|¤|{_FR_FUNCTION}\b|\w+ (?:ni|ou|et) )",
        ),
        RulePattern(
            "instruction",
            0.85,
            "toujours systématiquement",
            rf"{_FR_START}(?:{_FR_DO} (?:[\w¤]+ ){{0,2}}?(?:toujours|systématiquement)\b|(?:toujours"
            rf"|systématiquement) (?!pas\b|plus|aussi|autant|un plaisir|le même|la même|en (?:retard|vie|cours)"
            rf"|à (?:la|mon))(?:\w{{2,}}(?:er|ir|re)\b|¤|{_FR_FUNCTION}[ ']))",
        ),
        RulePattern(
            "instruction",
            0.75,
            "toujours jamais systématiquement",
            r"(?:^\W*|[,;:–—] ?|et )(?:(?:en|dans|aux?|avec|pour|les?|la|tou(?:s|tes)"
            r"|sur) )(?:[\w¤'-]+ ){1,5}(?:toujours|jamais|systématiquement) (?:¤|(?:en|avec|sans|de|par|le|la|les|au"
            r"|aux|dans|sur|ttc|ht|à|un|une)\b)",
        ),
        RulePattern(
            "instruction",
            0.7,
            "pas",
            rf"{_FR_START}(?:surtout )?pas (?:de |d')(?!{_FR_IDIOM})[\w¤'-]+(?: [\w¤'-]+){{0,6}}?(?:,? (?:s'il (?:te"
            rf"|vous) plaît|stp|svp|merci)\b|(?:,|,? et|,? ni|,? ou) (?:et )?(?:pas |de |d'|jamais|toujours|aucun)"
            rf"|\s(?:sans|avant|dans|en|sur|aux?|avec|après|pour|chez|le (?:lundi|mardi|mercredi|jeudi|vendredi"
            rf"|samedi|dimanche|soir|matin|week-end))\b)",
        ),
        RulePattern(
            "instruction",
            0.4,
            "pas",
            rf"^\W*(?:et |mais |surtout )*pas (?:de |d')(?!{_FR_IDIOM})[\w¤'-]+(?: [\w¤'-]+)?\W*$",
        ),
        RulePattern(
            "instruction",
            0.45,
            "pas",
            rf"^\W*(?:et |mais )?pas (?:de |d')(?!{_FR_IDIOM})[\w¤'-]+(?: [\w¤'-]+)?,",
            "before",
        ),
        RulePattern(
            "instruction",
            0.55,
            "tous toutes",
            r"^\W*tou(?:s|tes) les [\w¤'-]+(?: [\w¤'-]+)? (?:en|avec|sans|à|au) [\w¤'-]+(?: [\w¤'-]+){0,3}(?=\W*$|,)",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.7,
            "travaille peux",
            rf"\bje ne travaille (?:pas|jamais) {_FR_DAY}|\b{_FR_DAY},? je ne (?:peux|travaille) (?:pas|jamais)",
            "none",
        ),
        RulePattern(
            "instruction",
            0.65,
            "aucun aucune zéro",
            rf"{_FR_START}(?:aucune?|zéro) (?!{_FR_IDIOM}|chance)[\w¤'-]+(?: [\w¤'-]+){{0,4}}?(?:,? (?:s'il (?:te"
            rf"|vous) plaît|stp|svp)|\s(?:sans|avant|dans|en|sur|aux?|avec|après)\b)",
        ),
        RulePattern(
            "instruction",
            0.7,
            "plaît plait stp svp merci",
            r"\b(?:toujours|jamais|uniquement|seulement) [^.;:!?]{1,50}\b(?:s'il (?:te|vous) pla[iî]t|stp|svp"
            r"|merci)\b|\bmerci de (?:toujours|ne (?:jamais|pas|plus))\b",
        ),
        RulePattern(
            "instruction",
            0.55,
            "pas plus",
            rf"{_FR_START}n(?:e |')(?:(?:me|nous|lui|leur|les) )?(?:utilis|mets|mettez|écri|dis|dites|fais|faites"
            rf"|envo|inclu|tradui|ajout|sign|répon|parl|appel|mentionn|promet|propos|recommand|invent|répét|chang"
            rf"|modifi|touch|abrég|cit|tuto|vouvo|vouss)\w* (?:pas|plus)\b(?![^,.;:!?]*\b{_FR_NOW}\b)",
        ),
        RulePattern(
            "instruction",
            0.7,
            "veux voudrais souhaite déteste",
            r"(?<!si )\bje (?:ne )?(?:veux|voudrais|souhaite) (?:pas (?:que (?!tu te|vous vous)|de|d'|voir)"
            r"|plus (?:de|que"
            r"|voir)|jamais|toujours|que (?:toujours|tou(?:s|tes)|chaque|les|le|la|tout))|\bje déteste (?:qu'on"
            r"|quand (?:tu|vous|on))",
            "none",
        ),
        RulePattern("instruction", 0.5, "préfère préférons", r"\b(?:je préfère|nous préférons|on préfère)\b", "none"),
        RulePattern(
            "instruction",
            0.75,
            "faut doit doivent dois devez peut",
            r"\bil faut (?:toujours|impérativement)\b|\bil ne faut (?:jamais|pas) \w+(?:er|ir|re)\b(?! (?:oublier"
            r"|croire))|\b(?!je |j' |il |elle |on |ça )[\w'-]+ (?:doi(?:t|vent|s)|devez) (?:toujours|impérativement"
            r"|obligatoirement)\b|\bne (?:doi(?:t|vent|s)|devez|peu(?:t|vent)) (?:jamais|en aucun cas)\b"
            r"|\ben aucun cas\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "interdit interdite interdits interdites proscrit tabou obligatoire banni bannis",
            r"\b(?:est|sont|reste|restent|c'est) (?:\w+ )?(?:strictement )?(?:interdite?s?|proscrite?s?|tabous?"
            r"|bannie?s?|obligatoires?)\b|^\W*interdiction de|^\W*interdit de",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "vouvoie vouvoyer vouvoyez tutoie tutoyer tutoyez vouvoiement tutoiement vouvoyons tutoyons",
            r"\b(?:vouvo|tuto)(?:ie|yer|yez|iement|yons)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "tout tous toute toutes chaque",
            r"\b(?:tou(?:t|te|tes|s)|chaque) (?!fois|jour|année|le monde|le temps|à fait)[^.;:!?]{0,40}\b(?:doit"
            r"|doivent|prend|porte|portent|commence par|finit par|va dans|vont dans)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.75,
            "quand lorsque fois",
            rf"\b(?:quand|lorsque|chaque fois que) (?:tu|vous) (?:m')?(?!as|avez|peux|pouvez|veux|es"
            rf"|êtes)\w+[^.!?]{{2,60}}, (?:s'il (?:te|vous) plaît|toujours|jamais|{_FR_DO})",
            "none",
        ),
        RulePattern(
            "instruction",
            0.65,
            "uniquement seulement exclusivement que",
            rf"{_FR_START}(?:{_FR_DO} (?:[\w¤]+ ){{0,3}})?(?:uniquement|seulement|exclusivement) (?:en|avec|pour"
            rf"|après|avant|par|à|le|les|au) ?\w+(?: \w+)?\W*$|{_FR_START}n'utilisez? que\b",
        ),
        RulePattern(
            "instruction",
            0.6,
            "moi",
            rf"{_FR_START}(?:appelle|appelez)-moi (?!quand|demain|plus|si |dès|ce)|{_FR_START}(?:réponds|répondez"
            rf"|parle|parlez|écris|écrivez)-moi (?:toujours |uniquement )?(?:en|avec|par) ",
        ),
        RulePattern(
            "instruction",
            0.8,
            "exception règle principe",
            r"\b(?:c'est|est) (?:une |la )?règle\b|\bsans exception\b|\b(?:la|ma|notre) règle,? (?:est|c'est)\b"
            r"|\bpar principe\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.85,
            "allergique allergiques allergie allergies intolérant intolérante intolérance végétarien végétarienne"
            " végane vegan végétalien végétalienne coeliaque cœliaque diabétique",
            r"\b(?:suis|est|sont|sommes|ai|il a|elle a|ont)\b[^.;!?]{0,40}\b(?:allergi(?:ques?|es?)|intoléran\w+"
            r"|végétari\w+|végane?s?|vegan|végétalien\w*|c(?:oe|œ)liaque|diabétique)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "mange bois fume conduis supporte boit",
            r"\bn(?:e |')?(?:mange|bois|fume|conduis|supporte|digère|boit) (?:pas|jamais|plus|ni)(?: (?:de |d'|du "
            r"|des )(?!tout)|\W*$)",
            "none",
        ),
        RulePattern(
            "constraint",
            0.7,
            "peux peut dois",
            r"\bne (?:peux|peut|dois|doit) (?:pas|plus|jamais) (?:manger|boire|prendre|m'agenouiller|s'agenouiller"
            r"|porter|soulever|conduire|fumer|voler|me baisser|travailler)\b(?![^.;!?]*\b(?:aujourd|demain"
            r"|ce soir)\b)",
            "none",
        ),
        RulePattern(
            "constraint", 0.8, "jamais", rf"\b(?:jamais|pas) (?:{_FR_DAY}|avant \d|après \d)|\b{_FR_DAY},? jamais\b"
        ),
        RulePattern(
            "constraint",
            0.5,
            "seulement uniquement",
            rf"\b(?:seulement|uniquement) {_FR_DAY}(?: et {_FR_DAY})?\s*(?:[,.;!)]|$)",
            "none",
        ),
        RulePattern(
            "constraint",
            0.5,
            "maximum plus tard max",
            r"\b(?:au (?:maximum|plus tard|plus)|maximum|pas plus de)\b[^.;:!?]{0,10}\d"
            r"|\d[^.;:!?]{0,30}\b(?:au (?:maximum|plus tard|plus)|maximum|pas (?:un \w+ de )?plus)\b",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.6,
            "limite maximum plafond budget",
            r"\b(?:ma|mon|notre) (?:limite|maximum|plafond|budget),? (?:est|c'est)\b",
            "none",
        ),
    ),
)
