"""German."""

from __future__ import annotations

from mcp_memory.when.vocabulary import Language, each, same

_DAYS = "montag; dienstag; mittwoch; donnerstag; freitag; samstag, sonnabend; sonntag"
_PARTS = ("morgen", "vormittag", "mittag", "nachmittag", "abend", "nacht")

LANGUAGE = Language(
    words={
        "WORD": each(
            range(1, 13),
            "eins; zwei, zweien; drei; vier; fünf; sechs; sieben; acht; neun; zehn; elf; zwölf",
        ),
        "NTH": each(range(1, 5), "erste, ersten, erster, erstes; zweite, zweiten; dritte, dritten; vierte, vierten"),
        "ONE": same(1, "ein, eine, einen, einem, einer"),
        "HALF": same(1, "halbe, halben, halbes, halbem"),
        "FEW": {**same((2, 5), "ein paar, paar, einigen, einige, wenigen, wenige"), **same((3, 7), "mehreren")},
        "UNIT": each(
            ("minute", "hour", "day", "week", "weekend", "month", "quarter", "year"),
            "minute, minuten; stunde, stunden; tag, tage, tagen; woche, wochen; wochenende, wochenenden; "
            "monat, monate, monaten, monats; quartal, quartale, quartalen, quartals; jahr, jahre, jahren, jahres",
        ),
        "MONTH": each(
            range(1, 13),
            "januar, januars, jänner; februar, februars, feber; märz, maerz; april; mai; juni; juli; august; "
            "september; oktober; november; dezember",
        ),
        "MON": each((1, 2, 3, 4, 8, 9, 10, 11, 12), "jan; feb; mär; apr; aug; sep, sept; okt; nov; dez"),
        "WEEKDAY": {
            **each(range(7), _DAYS),
            **{day + part: value for day, value in each(range(7), _DAYS).items() for part in _PARTS},
        },
        "SEASON": each(range(4), "frühling, frühjahr, frühlings; sommer, sommers; herbst, herbstes; winter, winters"),
        "PART": each(
            ((8, 12), (11, 14), (12, 18), (17, 24), (18, 30)),
            "früh, vormittag; mittag; nachmittag; abend; nacht",
        ),
        "FEAST": each(((1, 1), (12, 24), (12, 25), (12, 31)), "neujahr; heiligabend; weihnachten; silvester"),
        "DAY": each((-2, -1, 0, 1, 2), "vorgestern; gestern; heute; morgen; übermorgen"),
        "DAYPART": {
            "heute morgen": (0, (4, 12)),
            "heute nacht": (0, (0, 6)),
            "gestern morgen": (-1, (4, 12)),
            "vorgestern morgen": (-2, (4, 12)),
        },
        "LATELY": same(("day", 1, 14), "neulich, letztens"),
        "REL": {
            **same(-2, "vorletzte, vorletzten, vorletztes, vorletzter, vorletztem"),
            **same(-1, "letzte, letzten, letzter, letztes, letztem, vorige, vorigen, voriges, voriger, vorigem"),
            **same(-1, "vergangene, vergangenen, vergangener, vergangenes, vergangenem"),
            **same(0, "diese, diesen, dieser, dieses, diesem"),
            **same(1, "nächste, nächsten, nächster, nächstes, nächstem, kommende, kommenden, kommendes"),
            **same(2, "übernächste, übernächsten, übernächster, übernächstes, übernächstem"),
        },
        "SHIFT": same(("year", 0), "heuer"),
        "PRIOR": same(None, "vor"),
        "EDGE": {
            **same((0, 1 / 3), "anfang, zu beginn"),
            **same((1 / 3, 2 / 3), "mitte"),
            **same((2 / 3, 1), "ende"),
        },
        "IN": same(None, "im, in, während"),
        "ON": same(None, "am, vom, beim"),
        "AT": same(None, "an, zu, übers, über"),
        "FROM": same(None, "seit, ab, bis, seit dem, bis zum"),
        "THE": same(None, "der, dem, den, das, die, des"),
        "AND": same(None, "und, oder"),
        "NOT": same(
            None,
            "am morgen, der morgen, den morgen, jeden morgen, guten morgen, zum ersten mal, letzte nacht des, "
            "am tag, im letzten moment",
        ),
    },
    shapes="""
        (ON|FROM) WEEKDAY PART?
        PRIOR THE (REL|NTH)? (NUM|WORD|FEW) UNIT
        (IN|FROM|ON) THE? REL (NUM|WORD|FEW) UNIT
        WEEKDAY REL UNIT
    """,
    cues={
        "past": (
            r"war|waren|warst|wart|hatte|hatten|hattest|wurde|wurden|kam|kamen|ging|gingen|gab|sah|sahen|fand|"
            r"sagte|sagten|rief|schrieb|bekam|kaufte|machte|machten|musste|konnte|wollte|ge[a-zäöüß]{2,}(?:t|en)|"
            r"(?:an|auf|aus|ab|ein|mit|vor|zu|zurück|her|hin|los|um|nach)ge[a-zäöüß]{2,}(?:t|en)|(?:ver|be|er|ent|"
            r"zer)[a-zäöüß]{3,}t (?:habe|hat|haben|hatte)|passiert|telefoniert"
        ),
        "future": (
            r"werde|werden|wird|wirst|will|wollen|willst|muss|müssen|musst|soll|sollen|sollst|sollte|kann|können|"
            r"kannst|möchte|möchten|darf|bitte|kommt|komme|kommen|geht|gehe|gehen|fährt|fahre|fahren|fliege|"
            r"fliegen|treffe|treffen|beginnt|startet|endet|öffnet|steht an|erinner\w*|habe ich (?:einen|eine|ein)|"
            r"haben wir (?:einen|eine|ein)|ist|sind|mach|mache|machen|frist|deadline|termin"
        ),
        "habit": (r"jeden|jede|jedes|immer|meistens|oft|normalerweise|üblicherweise|nie|manchmal"),
        "unsure": (r"geburtstag\w*|jahrestag|geboren|hätte|wäre|würde|falls|wenn|sollte eigentlich"),
    },
)
