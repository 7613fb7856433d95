"""Spanish."""

from __future__ import annotations

from mcp_memory.when.vocabulary import Language, each, same

LANGUAGE = Language(
    words={
        "WORD": each(range(2, 13), "dos; tres; cuatro; cinco; seis; siete; ocho; nueve; diez; once; doce"),
        "NTH": each(
            range(1, 5), "primer, primero, primera; segundo, segunda; tercer, tercero, tercera; cuarto, cuarta"
        ),
        "ONE": same(1, "un, una"),
        "HALF": same(1, "medio, media"),
        "FEW": {
            **same((2, 3), "un par de, par de"),
            **same((2, 5), "unos, unas, pocos, pocas, unos pocos, unas pocas, algunos, algunas"),
            **same((3, 7), "varios, varias"),
        },
        "UNIT": each(
            ("minute", "hour", "day", "week", "weekend", "month", "quarter", "year"),
            "minuto, minutos; hora, horas; día, días; semana, semanas; fin de semana, fines de semana, finde; "
            "mes, meses; trimestre, trimestres; año, años",
        ),
        "AMOUNT": {"quincena": ("day", 15)},
        "MONTH": each(
            range(1, 13),
            "enero; febrero; marzo; abril; mayo; junio; julio; agosto; septiembre, setiembre; octubre; noviembre; "
            "diciembre",
        ),
        "WEEKDAY": each(range(7), "lunes; martes; miércoles; jueves; viernes; sábado; domingo"),
        "SEASON": each(range(4), "primavera; verano; otoño; invierno"),
        "PART": each(
            ((4, 12), (11, 14), (12, 20), (18, 30)),
            "por la mañana, de la mañana, en la mañana; al mediodía; tarde, por la tarde, en la tarde, a la tarde; "
            "noche, por la noche, en la noche, a la noche",
        ),
        "FEAST": each(
            ((1, 1), (1, 6), (12, 24), (12, 25), (12, 31)),
            "año nuevo; día de reyes; nochebuena; navidad; nochevieja, fin de año",
        ),
        "DAY": each((-2, -1, 0, 1, 2), "anteayer, antes de ayer, antier; ayer; hoy; mañana; pasado mañana"),
        "DAYPART": {"anoche": (-1, (18, 30)), "esta mañana": (0, (4, 12)), "anteanoche": (-2, (18, 30))},
        "LATELY": same(("day", 1, 7), "el otro día, la otra noche"),
        "REL": same(0, "este, esta"),
        "RELP": {
            **same(-1, "pasado, pasada"),
            **same(1, "próximo, próxima, que viene, siguiente"),
        },
        "PAST": same(
            True, "último, última, últimos, últimas, el último, la última, los últimos, las últimas, pasados, pasadas"
        ),
        "AGO": same(None, "atrás"),
        "AHEAD": same(None, "dentro de"),
        "PRIOR": same(None, "hace"),
        "EDGE": {
            **same(
                (0, 1 / 3), "principios de, a principios de, a comienzos de, comienzos de, al inicio de, inicios de"
            ),
            **same((1 / 3, 2 / 3), "mediados de, a mediados de"),
            **same((2 / 3, 1), "finales de, a finales de, fines de, a fines de, al final de"),
        },
        "IN": same(None, "en, durante"),
        "ON": same(None, "el, del"),
        "AT": same(None, "por, en la"),
        "FROM": same(None, "desde, desde el, hasta, hasta el"),
        "THE": same(None, "la, los, las, mes de, el mes de, el año"),
        "OF": same(None, "de, del año"),
        "AND": same(None, "y, o"),
        "THAT": same(None, "que"),
        "NOT": same(None, "la mañana, mañanas, viernes santo, domingo de ramos, más tarde"),
    },
    shapes="""
        (ON|FROM) WEEKDAY PART?
        ON (NUM|ORD) OF MONTH ((OF|ON) YEAR)?
    """,
    ordinals=frozenset(("º", "°", "ª")),
    cues={
        "past": (
            r"fui|fue|fuimos|fueron|era|eran|estaba|estuve|estuvo|había|tenía|tuve|tuvo|hice|hizo|hicimos|vi|vino|"
            r"vinieron|dije|dijo|puse|quedé|\w{2,}(?:aron|ieron|aba|aban|ábamos|amos ayer)|\w{3,}(?:ó|é)(?!\w)|"
            r"(?:he|has|ha|hemos|han) \w+(?:ado|ido|to|cho)"
        ),
        "future": (
            r"voy|vas|va|vamos|van|tengo|tiene|tenemos|tienes|hay|viene|vienen|llega|llegan|empieza|abre|cierra|"
            r"toca|quedamos|\w{3,}(?:ré|rá|rás|remos|rán)|debo|debe|quiero|puedo|por favor|recuérda\w*"
        ),
        "habit": (r"cada|todos|todas|siempre|suele|nunca"),
        "unsure": (r"cumpleaños|aniversario|nací|nació|si|habría|iba|íbamos|quería"),
    },
)
