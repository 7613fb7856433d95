"""Italian."""

from __future__ import annotations

from mcp_memory.when.vocabulary import Language, each, same

LANGUAGE = Language(
    words={
        "WORD": each(range(2, 13), "due; tre; quattro; cinque; sei; sette; otto; nove; dieci; undici; dodici"),
        "NTH": each(range(1, 5), "primo, prima; secondo, seconda; terzo, terza; quarto, quarta"),
        "ONE": same(1, "un, uno, una, un'"),
        "HALF": same(1, "mezzo, mezza"),
        "FEW": {
            **same((2, 3), "un paio di, paio di"),
            **same((2, 5), "alcuni, alcune, qualche, pochi, poche"),
            **same((3, 7), "diversi, diverse, parecchi, parecchie"),
        },
        "UNIT": each(
            ("minute", "hour", "day", "week", "weekend", "month", "quarter", "year"),
            "minuto, minuti; ora, ore; giorno, giorni; settimana, settimane; fine settimana, fine-settimana, weekend, "
            "week-end; mese, mesi; trimestre, trimestri; anno, anni",
        ),
        "MONTH": each(
            range(1, 13),
            "gennaio; febbraio; marzo; aprile; maggio; giugno; luglio; agosto; settembre; ottobre; novembre; dicembre",
        ),
        "WEEKDAY": each(range(7), "lunedì; martedì; mercoledì; giovedì; venerdì; sabato; domenica"),
        "SEASON": each(range(4), "primavera; estate; autunno; inverno"),
        "PART": each(
            ((4, 12), (11, 14), (12, 18), (17, 24), (18, 30)),
            "mattina, mattino; a mezzogiorno; pomeriggio; sera; notte",
        ),
        "FEAST": each(
            ((1, 1), (8, 15), (12, 24), (12, 25), (12, 31)),
            "capodanno; ferragosto; vigilia di natale; natale; san silvestro",
        ),
        "DAY": each(
            (-2, -1, 0, 1, 2), "l'altro ieri, altro ieri, avantieri, ieri l'altro; ieri; oggi; domani; dopodomani"
        ),
        "DAYPART": {
            **same((0, (4, 12)), "stamattina, stamani"),
            **same((0, (17, 24)), "stasera"),
            **same((0, (0, 6)), "stanotte"),
        },
        "LATELY": same(("day", 1, 7), "l'altro giorno, l'altra sera"),
        "REL": same(0, "questo, questa, quest'"),
        "RELP": {
            **same(-1, "scorso, scorsa, lo scorso, la scorsa, passato, passata"),
            **same(1, "prossimo, prossima, il prossimo, la prossima"),
        },
        "PAST": same(
            True, "ultimo, ultima, ultimi, ultime, gli ultimi, le ultime, negli ultimi, nelle ultime, scorsi, scorse"
        ),
        "AGO": same(None, "fa"),
        "AHEAD": same(None, "tra, fra"),
        "EDGE": {
            **same((0, 1 / 3), "inizio, inizi di, agli inizi di, all'inizio di, ai primi di"),
            **same((1 / 3, 2 / 3), "metà, a metà"),
            **same((2 / 3, 1), "fine, alla fine di, a fine"),
        },
        "IN": same(None, "in, a, nel, nella, nell', durante, ad"),
        "ON": same(None, "il, del, dell', l'"),
        "AT": same(None, "al, alla"),
        "FROM": same(None, "da, dal, dall', fino a, fino al"),
        "THE": same(None, "lo, la, mese di, il mese di, nel mese di"),
        "OF": same(None, "di"),
        "AND": same(None, "e, o"),
        "EVERY": same(None, "ogni"),
        "NOT": same(None, "martedì grasso, venerdì santo"),
    },
    shapes="""
        (?<!ON|THE|EVERY) WEEKDAY PART?
        ON (NUM|ORD) MONTH ON? YEAR?
        (ON|IN) SEASON (ON YEAR)?
        SEASON ON YEAR
    """,
    ordinals=frozenset(("º", "°")),
    cues={
        "past": (
            r"ero|era|erano|eravamo|aveva|avevo|avevano|(?:ho|hai|ha|abbiamo|avete|hanno|sono|è|siamo|"
            r"siete) (?:\w+ )?\w+(?:ato|ata|ati|ate|uto|uta|uti|ito|ita|iti|tto|tta|sto|so)|fu|fui"
        ),
        "future": (
            r"devo|deve|dobbiamo|devono|posso|può|voglio|vado|va|andiamo|viene|vengono|arriva|arrivano|abbiamo un|"
            r"ho un|ho una|\w{3,}(?:rò|rà|remo|ranno|rai)|per favore|ricorda\w*|vediamo"
        ),
        "habit": (r"ogni|tutti|tutte|sempre|mai|spesso|di solito"),
        "unsure": (r"compleanno|anniversario|nato|nata|se|sarebbe|avrebbe|doveva|dovevo"),
    },
)
