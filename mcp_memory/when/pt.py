"""Portuguese."""

from __future__ import annotations

from mcp_memory.when.vocabulary import Language, each, same

LANGUAGE = Language(
    words={
        "WORD": each(range(2, 13), "dois, duas; três; quatro; cinco; seis; sete; oito; nove; dez; onze; doze"),
        "NTH": each(range(1, 5), "primeiro, primeira; segundo, segunda; terceiro, terceira; quarto, quarta"),
        "ONE": same(1, "um, uma"),
        "HALF": same(1, "meio, meia"),
        "FEW": {
            **same((2, 3), "um par de"),
            **same((2, 5), "alguns, algumas, uns, umas, poucos, poucas"),
            **same((3, 7), "vários, várias"),
        },
        "UNIT": each(
            ("minute", "hour", "day", "week", "weekend", "month", "quarter", "year"),
            "minuto, minutos; hora, horas; dia, dias; semana, semanas; "
            "fim de semana, fins de semana, final de semana, fim-de-semana; mês, meses; trimestre, trimestres; "
            "ano, anos",
        ),
        "AMOUNT": {"quinzena": ("day", 15)},
        "MONTH": each(
            range(1, 13),
            "janeiro; fevereiro; março; abril; maio; junho; julho; agosto; setembro; outubro; novembro; dezembro",
        ),
        "WEEKDAY": each(
            range(7),
            "segunda-feira, segunda feira; terça-feira, terça feira; quarta-feira, quarta feira; "
            "quinta-feira, quinta feira; sexta-feira, sexta feira; sábado; domingo",
        ),
        # without "-feira" they are also "second" to "sixth", and "segunda", "quarta" stand above as those
        "WDAY": each((1, 3, 4), "terça; quinta; sexta"),
        "SEASON": each(range(4), "primavera; verão; outono; inverno"),
        "PART": each(
            ((4, 12), (11, 14), (12, 19), (18, 30)),
            "de manhã, pela manhã, manhã; ao meio-dia; à tarde, de tarde, tarde; à noite, de noite, noite",
        ),
        "FEAST": each(
            ((1, 1), (12, 24), (12, 25), (12, 31)),
            "ano novo; véspera de natal; natal; véspera de ano novo, réveillon",
        ),
        "DAY": each((-2, -1, 0, 1, 2), "anteontem; ontem; hoje; amanhã; depois de amanhã"),
        "LATELY": same(("day", 1, 7), "no outro dia, outro dia, noutro dia"),
        "REL": same(0, "este, esta, neste, nesta, deste, desta, esse, essa, nesse, nessa"),
        "RELP": {
            **same(-1, "passado, passada"),
            **same(1, "próximo, próxima, que vem, seguinte"),
        },
        "PAST": same(
            True,
            "último, última, últimos, últimas, no último, na última, nos últimos, nas últimas, passados, passadas",
        ),
        "AGO": same(None, "atrás"),
        "AHEAD": same(None, "dentro de, daqui a"),
        "PRIOR": same(None, "há, faz"),
        "EDGE": {
            **same((0, 1 / 3), "início de, no início de, começo de, no começo de, princípio de"),
            **same((1 / 3, 2 / 3), "meados de, em meados de"),
            **same((2 / 3, 1), "fim de, final de, fins de"),
        },
        "IN": same(None, "em, durante"),
        "ON": same(None, "no, na, o, do"),
        "AT": same(None, "pelo, pela"),
        "FROM": same(None, "desde, desde a, desde o, até, até o, a partir de"),
        "THE": same(None, "a, os, as, mês de, o mês de, no mês de, dia, no dia, o ano de, no ano de"),
        "OF": same(None, "de"),
        "AND": same(None, "e, ou"),
        "THAT": same(None, "que"),
        "NOT": same(None, "sexta-feira santa, a manhã, da manhã, mais tarde, domingo de ramos"),
    },
    shapes="""
        (ON|FROM) WEEKDAY PART?
        WDAY RELP
    """,
    ordinals=frozenset(("º", "°", "ª")),
    cues={
        "past": (
            r"fui|foi|fomos|foram|era|eram|estava|estive|esteve|tinha|tive|teve|tivemos|fiz|fez|fizemos|vi|viu|"
            r"veio|vieram|disse|\w{2,}(?:ei|ou|aram|eram|iram|ava|avam|ámos)"
        ),
        "future": (
            r"vou|vais|vai|vamos|vão|tenho|tem|temos|preciso|precisa|precisamos|deve|devo|quero|posso|chega|"
            r"chegam|vem|vêm|começa|abre|fecha|\w{3,}(?:rei|rá|remos|rão)|por favor|lembra\w*"
        ),
        "habit": (r"cada|todo|toda|todos|todas|sempre|nunca|costumo|costuma"),
        "unsure": (r"aniversário|nasci|nasceu|se|seria|teria|ia|queria"),
    },
)
