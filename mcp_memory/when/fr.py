"""French."""

from __future__ import annotations

from mcp_memory.when.vocabulary import Language, each, same

LANGUAGE = Language(
    words={
        "WORD": each(range(2, 13), "deux; trois; quatre; cinq; six; sept; huit; neuf; dix; onze; douze"),
        "NTH": each(range(1, 5), "premier, première; deuxième, second, seconde; troisième; quatrième"),
        "ONE": same(1, "un, une"),
        "HALF": same(1, "demi, demie"),
        "FEW": {**same((2, 5), "quelques, une poignée de"), **same((3, 7), "plusieurs")},
        "UNIT": each(
            ("minute", "hour", "day", "week", "weekend", "month", "quarter", "year"),
            "minute, minutes; heure, heures; jour, jours; semaine, semaines; week-end, week-ends, weekend, weekends; "
            "mois; trimestre, trimestres; an, ans, année, années",
        ),
        "AMOUNT": {"quinzaine de jours": ("day", 15), "quinzaine": ("day", 15)},
        "MONTH": each(
            range(1, 13),
            "janvier; février; mars; avril; mai; juin; juillet; août; septembre; octobre; novembre; décembre",
        ),
        "MON": each((1, 2, 4, 7, 9, 10, 11, 12), "janv; févr; avr; juil; sept; oct; nov; déc"),
        "WEEKDAY": each(range(7), "lundi; mardi; mercredi; jeudi; vendredi; samedi; dimanche"),
        "SEASON": each(range(4), "printemps; été; automne; hiver"),
        "PART": each(
            ((4, 12), (11, 14), (12, 18), (17, 24), (18, 30)),
            "matin, au matin; midi, à midi; après-midi, après midi; soir, au soir; nuit",
        ),
        "FEAST": each(
            ((1, 1), (2, 14), (12, 24), (12, 25), (12, 31)),
            "jour de l'an, nouvel an; saint-valentin; réveillon de noël; noël; saint-sylvestre",
        ),
        "DAY": each((-2, -1, 0, 1, 2), "avant-hier, avant hier; hier; aujourd'hui; demain; après-demain, après demain"),
        "DAYPART": same((-1, (18, 30)), "la nuit dernière, cette nuit"),
        "LATELY": same(("day", 1, 7), "l'autre jour, l'autre soir"),
        "REL": same(0, "ce, cet, cette"),
        "RELP": {
            **same(-1, "dernier, dernière, derniers, dernières, passé, passée, passés, passées"),
            **same(1, "prochain, prochaine, prochains, prochaines"),
        },
        "PRIOR": same(None, "il y a, y a"),
        "EDGE": {
            **same((0, 1 / 3), "début, au début de, au début du, le début de, début de"),
            **same((1 / 3, 2 / 3), "mi, au milieu de, au milieu du"),
            **same((2 / 3, 1), "fin, à la fin de, à la fin du, la fin de, fin de"),
        },
        "IN": same(None, "en, au, pendant, durant, dans, au cours de, au cours du, au cours des"),
        "ON": same(None, "le"),
        "AT": same(None, "à"),
        "FROM": same(None, "depuis, depuis le, dès, jusqu'en, jusqu'à, jusqu'au"),
        "THE": same(None, "la, l', les, mois de, mois d', le mois de, au mois de, au mois d', ces"),
        "OF": same(None, "de, d', du"),
        "AND": same(None, "et, ou"),
        "THAT": same(None, "que, qu'"),
        "EVERY": same(None, "chaque, tous les"),
        "NOT": same(None, "mardi gras, ce jour"),
    },
    shapes="""
        ON (NUM|ORD) MONTH YEAR?
        (?<!ON|EVERY) WEEKDAY PART?
        (IN|ON) THE? (RELP)? (NUM|WORD) RELP UNIT
    """,
    ordinals=frozenset(("er",)),
    cues={
        "past": (
            r"était|étaient|étais|avait|avaient|(?:ai|as|a|avons|avez|ont|suis|es|est|sommes|êtes|"
            r"sont) (?:\w+ )?\w+(?:é|ée|és|ées|i|is|it|u|us|ue|ert)|fut|\w{3,}(?:aient|ais|ait)"
        ),
        "future": (
            r"vais|vas|va|allons|allez|vont|dois|doit|devons|faut|faudra|\w{3,}(?:erai|eras|era|erons|erez|eront)|"
            r"sera|serai|serons|seront|aura|aurai|auront|peux|peut|rendez-vous|s'il te plaît|rappelle\w*|prévu\w*"
        ),
        "habit": (r"chaque|tous|toutes|toujours|souvent|jamais|d'habitude"),
        "unsure": (r"anniversaire|né|née|si|aurait|serait|devait|allait"),
    },
)
