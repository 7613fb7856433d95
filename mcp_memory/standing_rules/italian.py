"""Standing rules in Italian."""

from __future__ import annotations

from mcp_memory.standing_rules.grammar import Grammar, RulePattern

__all__ = ["ITALIAN"]

_IT_START = r"(?:^\W*|[,;:(–—]\s*| - |\b(?:e|ed|o|ma|però|quindi|anche|per favore|ah|oh|ok|sì) )"
_IT_DO = (
    r"(?:usa|usi|usate|utilizza|metti|metta|mettete|scrivi|scriva|scrivete|scrivimi|manda|mandi|invia"
    r"|includi|traduci|aggiungi|firma|rispondi|rispondimi|risponda|parla|parlami|chiama|tratta"
    r"|arrotonda|inizia|comincia|finisci|indica|dai|dì|di'|fai|fa'|lascia|tieni|controlla|chiedi)"
)
_IT_FUNCTION = (
    r"(?:in|con|senza|di|al?|per|prima|dopo|più di|meno di|solo|il|lo|la|i|gli|le|un|una|due|entrambi|nel"
    r"|nella|nei|nelle|sul|sulla|sui|dal|dalla|l')"
)

_IT_NOT_VERBAL = r"(?!(?:lo (?:so|vedo|ho)|la (?:vedo|ho)|l'ho|in vita mia|più (?:visto|stato)|di meno)\b)"
_IT_NOW = r"(?:adesso|ora|oggi|domani|ancora|questo|questa|quello|qui|lo)"
_IT_DAY = (
    r"(?:(?:il |di |la )?(?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica)|(?:di |la )?(?:mattina"
    r"|sera)|(?:nei |il )?(?:fine settimana|weekend))"
)


ITALIAN = Grammar(
    "it",
    r"\b(?:io|lui|lei (?!per)|loro|noi|ho|hai|ha|abbiamo|hanno|avev\w+|era|erano|stato|stata|stati|sono|è"
    r"|ero|fu|c'è|c'era|\w{2,}(?:ava|avano|eva|evano|arono|irono|ò))\b",
    (
        RulePattern(
            "instruction",
            0.95,
            "ora adesso oggi avanti futuro innanzi",
            r"\b(?:d'ora in (?:poi|avanti)|da (?:ora|adesso|oggi) in (?:poi|avanti)|d'ora innanzi"
            r"|in futuro,? (?:per favore|non|sempre|usa))\b(?! (?:sarò|farò|vado|andrò|sarà|cercherò))"
            r"|\bda (?:adesso|oggi) (?:scrivi|usa|voglio|solo)",
            "none",
        ),
        RulePattern(
            "instruction",
            0.9,
            "mai",
            rf"{_IT_START}non (?:\w+ )?(?:{_IT_DO}|\w{{2,}}(?:are|ere|ire|r(?:lo|la|li|le|mi|gli|ci))) mai\b"
            rf"|{_IT_START}mai (?!più\b|stat|vist|dire mai|sentit|successo|una gioia|e poi mai|capitat)(?:\w+(?:are"
            rf"|ere|ire|rre)\b|¤|{_IT_NOT_VERBAL}{_IT_FUNCTION}[ '¤]|\w+ (?:né|o|e) \w+)",
        ),
        RulePattern(
            "instruction",
            0.85,
            "sempre",
            rf"{_IT_START}(?:{_IT_DO} (?:[\w¤]+ ){{0,2}}?sempre\b|sempre (?!più\b|meno\b|meglio|stat|che\b|così"
            rf"|un piacere|lo stesso|la stess|gli stess|a mesma|o mesmo|in ritardo|con me)(?:{_IT_DO}\b|\w+(?:are"
            rf"|ere|ire)\b|¤|{_IT_FUNCTION}[ ']))",
        ),
        RulePattern(
            "instruction",
            0.75,
            "sempre mai",
            r"(?:^\W*|[,;:–—] ?|e )(?:(?:in|nel\w*|a[il]?|ag?gli|alle|con|per|il?|gli|le|la"
            r"|tutt[iaeo]) )(?:[\w¤'-]+ ){1,5}(?:sempre|mai) (?:¤|(?:in|con|senza|di|per|il|lo|la|i|gli|le|un|una"
            r"|al|nel|del lei|del tu)[ '.])",
        ),
        RulePattern(
            "instruction",
            0.7,
            "niente nessun nessuna",
            rf"{_IT_START}(?:niente|nessun[ao']?) (?!di (?:che|male|grave|speciale|nuovo)|paura|problem|da\b|male"
            rf"|più\b|meno|altro|affatto|che\b|idea|di tutto|scherz)[\w¤'-]+(?: [\w¤-]+)*?(?:,| (?:in|nel\w*|sul\w*"
            rf"|con|per favore|senza|prima|dopo|e niente|né)\b)|{_IT_START}niente (?!di|da|paura|problem|male|più"
            rf"|meno|altro|affatto|che)[\w¤]+(?: [\w¤]+)?\W*$",
        ),
        RulePattern(
            "instruction",
            0.7,
            "favore cortesia piacere",
            r"\b(?:sempre|mai|niente|nessuna?|senza|solo) [^.;:!?]{1,50}\bper (?:favore|piacere|cortesia)\b"
            r"|\bper (?:favore|piacere|cortesia),? (?:sempre|mai|niente|nessuna?|senza|solo)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.5,
            "non",
            rf"{_IT_START}(?:per favore )?non (?:usare|scrivere|mettere|dire|fare|mandare|inviare|includere"
            rf"|menzionare|citare|chiamar\w+|tradurre|aggiungere|cambiare|modificare|toccare|promettere|consigliare"
            rf"|suggerire|proporre|firmare|ripetere|inventare|rispondere|parlar\w+|abbreviare|arrotondare|mescolare"
            rf"|dare|darmi)\b(?! (?:nulla|niente)\W*$)(?![^,.;:!?]*\b{_IT_NOW}\b)",
        ),
        RulePattern(
            "instruction",
            0.6,
            "senza",
            r"(?:^\W*|[,;:] (?:e )?)senza (?!dubbio|problem|volere|di me|di te|fretta|fine|parlare|contare"
            r"|senso)[\w¤]+(?: [\w¤]+){0,2}(?:,? per favore|, (?:senza|e (?:senza|mai|sempre)))\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.7,
            "voglio odio detesto",
            r"\b(?:non voglio (?:che (?!ti|tu pensi)|vedere|nessun|mai)|voglio (?:sempre|che (?:sempre|tutt[ie]"
            r"|ogni))|odio quando (?:mi|usi|scrivi)|detesto quando)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.55,
            "tutti tutte",
            r"^\W*tutt[ie] (?:i|le|gli) [\w¤]+(?: [\w¤]+)? (?:in|con|senza) [\w¤]+(?: [\w¤]+){0,3}(?=\W*$|,)",
            "clause",
        ),
        RulePattern(
            "constraint", 0.7, "lavoro posso", rf"\bnon lavoro {_IT_DAY}|\b{_IT_DAY},? non (?:posso|lavoro)\b", "none"
        ),
        RulePattern("instruction", 0.5, "preferisco preferiamo", r"\b(?:preferisco|preferiamo)\b", "none"),
        RulePattern(
            "instruction",
            0.75,
            "deve devono devi bisogna può possono va vanno",
            r"\b(?:dev[ei]|devono|bisogna|va|vanno) sempre \w+|\bnon (?:dev[ei]|devono|bisogna|si (?:deve|può)|può"
            r"|possono|va|vanno) mai\b|\b(?:va|vanno) (?:sempre |solo )?(?:scritt[oaie]|mess[oaie]|indicat[oaie])\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "vietato vietata vietati vietate proibito proibita tabù obbligatorio",
            r"\b(?:è|sono|resta|restano) (?:\w+ )?(?:vietat[oaie]|proibit[oaie]|tabù|bandit[oaie]"
            r"|obbligatori[oae]?)\b|^\W*vietat[oaie] ",
            "none",
        ),
        RulePattern(
            "instruction",
            0.7,
            "lei tu dare diamo dai do",
            r"\b(?:dare|diamo|dai|date|diamoci|si dà|do) (?:sempre |mai )?(?:del|il|dal) (?:lei|tu|voi)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "tutto tutti tutte tutta ogni",
            r"\b(?:tutt[oaie]|ogni) (?!volta|giorno|anno|tanto)[^.;:!?]{0,40}\b(?:deve|devono|va |vanno )",
            "none",
        ),
        RulePattern(
            "instruction",
            0.75,
            "quando volta",
            rf"\b(?:quando|ogni volta che) (?:mi )?\w+i\b[^.!?]{{2,60}}, (?:per favore|sempre|mai|{_IT_DO})\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.65,
            "solo soltanto esclusivamente",
            rf"{_IT_START}(?:{_IT_DO} (?:[\w¤]+ ){{0,3}})?(?:solo|soltanto|esclusivamente) (?:in|con|per|dopo|prima"
            rf"|al|nel) \w+(?: \w+)?\W*$|{_IT_START}{_IT_DO} (?:solo|soltanto|esclusivamente)\b",
        ),
        RulePattern(
            "instruction",
            0.6,
            "chiamami rispondimi parlami scrivimi rispondi",
            rf"{_IT_START}(?:chiamami (?!quando|domani|dopo|se )|(?:rispondimi|parlami|scrivimi) (?:sempre "
            rf"|solo )?(?:in|con|per) |rispondi (?:sempre |solo )?in italiano)",
        ),
        RulePattern(
            "instruction",
            0.8,
            "eccezione eccezioni regola",
            r"\bè (?:una |la )?regola\b|\bsenza eccezion[ei]\b|\b(?:la|mia|nostra) regola è\b|\bper (?:principio"
            r"|regola)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.85,
            "allergico allergica allergici allergia allergie intollerante intolleranza vegano vegana vegetariano"
            " vegetariana celiaco celiaca diabetico diabetica",
            r"\b(?:sono|è|ho|ha|siamo|hanno)\b[^.;!?]{0,40}\b(?:allergic[oahi]+|allergi[ae]|intolleran\w+"
            r"|vegan[oaie]|vegetarian[oaie]|celiac[oahi]+|diabetic[oahi]+)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "mangio bevo fumo guido mangia beve",
            r"\bnon (?:mangio|bevo|fumo|guido|tollero|digerisco|mangia|beve) (?!niente\b|più\b|quest|il |la |molto"
            r"|sempre|ora|che\b|prima|in\b|così|un[ao]?\b|da\b)\w+|\bnon (?:fumo|bevo|guido)\W*$",
            "none",
        ),
        RulePattern(
            "constraint",
            0.7,
            "posso può possiamo possono",
            r"\bnon (?:posso|può|possiamo|possono) (?:mangiare|bere|prendere|inginocchiar\w+|sollevare|alzare"
            r"|guidare|volare|fumare|piegar\w+|lavorare)\b(?![^.;!?]*\b(?:oggi|più|domani)\b)",
            "none",
        ),
        RulePattern("constraint", 0.8, "mai", rf"\b{_IT_DAY},? mai\b|\bmai (?:{_IT_DAY}\b|prima delle|dopo le)"),
        RulePattern("constraint", 0.5, "solo soltanto", rf"\bsolo {_IT_DAY}(?: e {_IT_DAY})?\s*(?:[,.;!)]|$)", "none"),
        RulePattern(
            "constraint",
            0.5,
            "massimo tardi più oltre",
            r"\b(?:al massimo|massimo|al più tardi|non più di|non oltre)\b[^.;:!?]{0,10}\d"
            r"|\d[^.;:!?]{0,30}\b(?:al massimo|massimo|al più tardi|non di più)\b",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.6,
            "limite massimo tetto budget",
            r"\b(?:il )?(?:mio|nostro) (?:limite|massimo|tetto|budget) è\b",
            "none",
        ),
    ),
)
