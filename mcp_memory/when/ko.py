"""Korean: words with particles that cling to them."""

from __future__ import annotations

from mcp_memory.when.vocabulary import Language, each, same

_PARTICLE = "(?:에서는|에서|에는|에도|에만|에|의|은|는|이|가|을|를|도|부터|까지|만|쯤|엔|날|경|로|마다)?"

LANGUAGE = Language(
    spaced=False,
    words={
        "WORD": {
            **each(range(1, 13), "한; 두; 세, 석; 네, 넉; 다섯; 여섯; 일곱; 여덟; 아홉; 열; 열한; 열두"),
            **each(range(2, 11), "이; 삼; 사; 오; 육; 칠; 팔; 구; 십"),
        },
        "FEW": {**same((2, 3), "두세, 이삼, 한두"), **same((2, 6), "몇")},
        "UNIT": {
            **each(
                ("minute", "hour", "day", "week", "month", "quarter", "year"),
                "분; 시간; 일; 주, 주일; 달, 개월; 분기; 년, 해",
            ),
            "주말": "weekend",
        },
        "AMOUNT": {
            **each([("day", n) for n in (1, 2, 3, 4, 5, 10, 15)], "하루; 이틀; 사흘; 나흘; 닷새; 열흘; 보름"),
            **same(("week", 1), "일주일"),
            **same(("year", 1), "일년, 일 년"),
            **same(("day", 3), "며칠"),
            **same(("month", 6), "반년"),
        },
        "MONTH": {},
        "WEEKDAY": each(range(7), "월요일; 화요일; 수요일; 목요일; 금요일; 토요일; 일요일"),
        "SEASON": each(range(4), "봄; 여름; 가을; 겨울"),
        "SHIFT": {
            "주말에": ("weekend", None),
            **each(
                [("week", n) for n in (-2, -1, 0, 1)],
                "지지난주, 지지난 주; 지난주, 지난 주, 저번 주, 저번주; 이번 주, 이번주; 다음 주, 다음주",
            ),
            **each(
                [("month", n) for n in (-2, -1, 0, 1)],
                "지지난달, 지지난 달; 지난달, 지난 달, 저번 달, 저번달; 이번 달, 이번달; 다음 달, 다음달",
            ),
            **each([("year", n) for n in (-2, -1, 0, 1)], "재작년; 작년, 지난해, 지난 해; 올해, 금년; 내년, 다음 해"),
            **each(
                [("weekend", n) for n in (-1, 0, 1)],
                "지난 주말, 지난주말, 지난주 주말, 저번 주말; 이번 주말, 이번주말; 다음 주말",
            ),
            **same(("quarter", -1), "지난 분기"),
            **same(("quarter", 0), "이번 분기"),
        },
        "PART": each(
            ((0, 6), (4, 12), (11, 14), (12, 18), (17, 24), (18, 30)),
            "새벽; 아침, 오전; 점심, 정오; 오후; 저녁; 밤",
        ),
        "FEAST": each(
            ((1, 1), (2, 14), (12, 24), (12, 25)),
            "새해 첫날, 신정; 발렌타인데이; 크리스마스이브, 크리스마스 이브; 크리스마스, 성탄절",
        ),
        "DAY": each((-3, -2, -1, 0, 1, 2), "그끄저께; 그저께, 그제, 엊그제; 어제; 오늘; 내일; 모레"),
        "DAYPART": {
            **same((-1, (17, 30)), "어젯밤, 간밤, 지난밤, 지난 밤"),
            **same((0, (17, 30)), "오늘밤"),
        },
        "LATELY": {**same(("day", 2, 7), "며칠 전"), **same(("day", 2, 21), "얼마 전, 요전")},
        "NTHOF": each(
            [("day", 1), ("day", -1), ("week", 1), ("week", -1)], "첫날, 첫째 날; 마지막 날; 첫 주, 첫째 주; 마지막 주"
        ),
        "REL": {**same(-1, "지난, 저번"), "이번": 0, "다음": 1},
        "PAST": same(True, "최근, 지난, 지난번"),
        "AGO": same(None, "전"),
        "THAT": same(None, "뒤, 후"),
        "EDGE": {
            **same((0, 1 / 3), "초, 초순"),
            **same((1 / 3, 2 / 3), "중순"),
            **same((2 / 3, 1), "말, 하순"),
        },
        "EVERY": same(None, "매주, 매달, 매년"),
        "NOT": same(None, "오늘날"),
    },
    forms={
        "YEAR": r"(\d{4})년(?!\s*(?:전|대|간|동안|생|차))",
        "MONTH": r"(\d{1,2})월(?!요일)",
        "ORD": r"(\d{1,2})일(?!\s*(?:전|간|동안|차|째|뒤|후))",
        "QUARTER": r"([1-4])분기",
    },
    tail=rf"{_PARTICLE}(?![가-힣])|(?=전{_PARTICLE}(?![가-힣]))",
    shapes="""
        (SHIFT|YEAR) MONTH ORD? PART?
        (SHIFT|YEAR) MONTH EDGE
        (SHIFT|YEAR) (SEASON|QUARTER|FEAST)
        (SHIFT|YEAR) EDGE
        MONTH ORD PART?
        MONTH EDGE?
        (SHIFT|YEAR)? MONTH NTHOF
        SHIFT WEEKDAY PART?
        SHIFT ORD PART?
        REL (WEEKDAY|SEASON|MONTH|FEAST) PART?
        (?<!EVERY) WEEKDAY PART?
        DAY PART?
        YEAR
        SHIFT
        FEAST
        (PAST|REL) (WORD|NUM|FEW) UNIT
        (WORD|NUM|FEW) UNIT AGO PART?
    """,
    cues={
        "past": (r"[았었했갔왔봤났됐샀렸졌켰웠겼](?:다|어|습니다|어요|는데|고|지|네|던|을)"),
        "future": (
            r"[갈할볼올될을를릴날](?: 거| 것| 예정| 계획|게)|겠|야 (?:해|돼|한다|합니다)|예정|계획|"
            r"해 ?줘|해 ?주세요|까지"
        ),
        "habit": (r"매주|매일|매달|매년|항상|보통|자주"),
        "unsure": (r"생일|기념일|태어|만약|려고 했"),
    },
)
