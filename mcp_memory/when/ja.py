"""Japanese."""

from __future__ import annotations

from mcp_memory.when.vocabulary import Language, each, same

_NUMBER = r"\d{1,2}|[一二三四五六七八九十]{1,3}"
_DAYS = each(range(7), "月; 火; 水; 木; 金; 土; 日")

LANGUAGE = Language(
    spaced=False,
    words={
        "FEW": {**same((2, 3), "二、三, 2、3, 2〜3"), **same((2, 5), "数")},
        "UNIT": each(
            ("minute", "hour", "day", "week", "month", "quarter", "year"),
            "分, 分間; 時間; 日, 日間; 週, 週間; か月, ヶ月, カ月, ヵ月, ケ月, 箇月, か月間, ヶ月間; 四半期; 年, 年間",
        ),
        "AMOUNT": {
            **same(("month", 6), "半年"),
            **same(("day", 15), "半月"),
            **same(("minute", 30), "半時間"),
        },
        "MONTH": {},
        "WEEKDAY": {day + end: value for day, value in _DAYS.items() for end in ("曜日", "曜")},
        "SEASON": each(range(4), "春; 夏; 秋; 冬"),
        "SHIFT": {
            "週末に": ("weekend", None),
            **each([("week", n) for n in (-2, -1, 0, 1, 2)], "先々週, 先先週; 先週; 今週; 来週; 再来週"),
            **each([("month", n) for n in (-2, -1, 0, 1, 2)], "先々月, 先先月; 先月; 今月; 来月; 再来月"),
            **each([("year", n) for n in (-2, -1, 0, 1, 2)], "一昨年, おととし, 前年; 去年, 昨年; 今年; 来年; 再来年"),
            **each(
                [("weekend", n) for n in (-2, -1, 0, 1)],
                "先々週末; 先週末, 先週の週末, この前の週末; 今週末, この週末, 今週の週末; 来週末, 来週の週末",
            ),
        },
        "QUARTER": each(
            range(1, 5), "第1四半期, 第一四半期; 第2四半期, 第二四半期; 第3四半期, 第三四半期; 第4四半期, 第四四半期"
        ),
        "PART": each(
            ((4, 12), (11, 14), (12, 18), (17, 24), (18, 30)),
            "朝, 午前, 午前中; 昼, お昼, 正午; 午後; 夕方, 晩; 夜, 深夜",
        ),
        "FEAST": each(
            ((1, 1), (2, 14), (12, 24), (12, 25), (12, 31)),
            "元日, 元旦, お正月; バレンタイン, バレンタインデー; クリスマスイブ; クリスマス; 大晦日, 大みそか",
        ),
        "DAY": each(
            (-3, -2, -1, 0, 1, 2),
            "一昨々日, さきおととい; 一昨日, おととい; 昨日, きのう; 今日, きょう, 本日; 明日, あした; "
            "明後日, あさって",
        ),
        "DAYPART": {
            **same((-2, (17, 30)), "一昨日の夜, おとといの夜"),
            **same((-1, (17, 30)), "昨夜, 昨晩, ゆうべ"),
            **same((0, (4, 12)), "今朝, けさ"),
            **same((0, (17, 30)), "今夜, 今晩"),
        },
        "LATELY": {
            **same(("day", 1, 14), "先日"),
            **same(("day", 1, 21), "この間, この前, こないだ, このあいだ"),
        },
        "NTHOF": each(
            [("day", 1), ("day", -1), ("week", 1), ("week", -1)], "最初の日; 最後の日; 最初の週, 第1週; 最後の週"
        ),
        "REL": {**same(-1, "この前の, こないだの, この間の"), **same(0, "この, 今度の"), "次の": 1},
        "PAST": same(True, "過去, 最近, ここ, この, 直近, 直近の"),
        "AGO": same(None, "前, ほど前, くらい前, ぐらい前, 以上前"),
        "EDGE": {
            **same((0, 1 / 3), "初め, 上旬, 初旬, 初頭, の初め, はじめ, のはじめ"),
            **same((1 / 3, 2 / 3), "中旬, 半ば, の半ば, 中頃"),
            **same((2 / 3, 1), "下旬, 末, の終わり, 終わり"),
            **same((0, 1 / 2), "前半"),
            **same((1 / 2, 1), "後半"),
        },
        "FROM": same(None, "から, 以来, 以降, まで"),
        "OF": same(None, "の, に, は, には, で"),
        "THAT": same(None, "後"),
        "EVERY": same(None, "毎週, 毎月, 毎年, 毎"),
    },
    forms={
        "YEAR": r"(\d{4}|[〇一二三四五六七八九]{4})年(?!前(?!半)|代|間|ぶり|後(?!半))",
        "MONTH": rf"({_NUMBER})月(?!間|曜)",
        "ORD": rf"({_NUMBER})日(?!前|間|後|目|ほど|くらい|ぐらい|以|曜)",
        "WORD": r"(\d{1,3}|[一二三四五六七八九十]{1,3})",
    },
    shapes="""
        (SHIFT|YEAR) OF? MONTH OF? ORD? OF? PART?
        (SHIFT|YEAR) OF? MONTH OF? EDGE
        (SHIFT|YEAR) OF? (SEASON|QUARTER|FEAST)
        (SHIFT|YEAR) OF? EDGE
        MONTH ORD OF? PART?
        MONTH EDGE?
        (SHIFT|YEAR)? OF? MONTH OF? NTHOF
        SEASON OF
        SHIFT OF? WEEKDAY OF? PART?
        SHIFT OF? ORD OF? PART?
        REL (WEEKDAY|SEASON)
        (?<!EVERY) WEEKDAY OF? PART?
        DAY OF? PART?
        YEAR
        SHIFT ~THAT
        FEAST
        PAST (WORD|FEW) UNIT ~THAT
        (WORD|FEW) UNIT AGO OF? PART?
    """,
    cues={
        "past": (
            r"(?:ました|でした|だった|かった|った|んだ|いた|した|きた|れた|えた|けた|べた|めた|った)(?!い|く|ら|り)"
        ),
        "future": (
            r"つもり|予定|ましょう|よう(?:と思|か)|てください|必要|なければ|たい(?:です|と|。|$)|締め切り|までに|でしょう"
        ),
        "habit": (r"毎|いつも|たいてい|よく"),
        "unsure": (r"誕生日|記念日|生まれ|たら|れば|なら|はずだった"),
    },
)
