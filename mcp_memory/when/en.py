"""English."""

from __future__ import annotations

from mcp_memory.when.vocabulary import Language, each, same

LANGUAGE = Language(
    words={
        "WORD": each(
            range(1, 21),
            "one; two; three; four; five; six; seven; eight; nine; ten; eleven; twelve; thirteen; fourteen; fifteen; "
            "sixteen; seventeen; eighteen; nineteen; twenty",
        ),
        "NTH": each(range(1, 11), "first; second; third; fourth; fifth; sixth; seventh; eighth; ninth; tenth"),
        "ONE": same(1, "a, an"),
        "HALF": same(1, "half"),
        "FEW": {
            **same((2, 3), "a couple of, a couple, couple of, couple"),
            **same((2, 5), "a few, few"),
            **same((3, 7), "several"),
        },
        "UNIT": each(
            ("minute", "hour", "day", "week", "weekend", "month", "quarter", "year"),
            "minute, minutes; hour, hours; day, days; week, weeks; weekend, weekends; month, months; "
            "quarter, quarters; year, years",
        ),
        "AMOUNT": same(("week", 2), "fortnight"),
        "MONTH": {
            **each(
                (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12),
                "january; february; march; april; june; july; august; september; october; november; december",
            ),
        },
        "MAY": same(5, "may"),
        "MON": each(
            (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12),
            "jan; feb; mar; apr; jun; jul; aug; sep, sept; oct; nov; dec",
        ),
        "WEEKDAY": each(range(7), "monday; tuesday; wednesday; thursday; friday; saturday; sunday"),
        "WDAY": each(range(7), "mon; tue, tues; wed; thu, thur, thurs; fri; sat; sun"),
        "SEASON": each(range(4), "spring, springtime; summer, summertime; fall, autumn; winter, wintertime"),
        "PART": each(
            ((4, 12), (11, 14), (12, 18), (17, 24), (18, 30)),
            "morning; noon, lunchtime; afternoon; evening; night",
        ),
        "FEAST": each(
            ((1, 1), (2, 14), (10, 31), (12, 24), (12, 25), (12, 31)),
            "new year, new year's, new year's day; valentine's day, valentines day; halloween; christmas eve; "
            "christmas, christmas day, xmas; new year's eve",
        ),
        "DAY": each(
            (-2, -1, 0, 1, 2),
            "the day before yesterday, day before yesterday; yesterday; today; tomorrow; "
            "the day after tomorrow, day after tomorrow",
        ),
        "DAYPART": {"tonight": (0, (17, 30))},
        "LATELY": {
            **same(("day", 1, 7), "the other day, the other night, the other morning, the other evening"),
            **same(("week", 1, 3), "the other week"),
        },
        "REL": {**same(-1, "last, this past, this last"), **same(0, "this, the current"), "next": 1},
        "PAST": {**same(True, "past, the past, these past"), **same(False, "the last, these last")},
        "AGO": same(None, "ago"),
        "EDGE": {
            **same((0, 1 / 3), "early, early in, beginning of, the beginning of, start of, the start of"),
            **same((1 / 3, 2 / 3), "mid, middle of, the middle of"),
            **same((2 / 3, 1), "late, late in, end of, the end of"),
            **same((0, 1 / 2), "first half of, the first half of"),
            **same((1 / 2, 1), "second half of, the second half of"),
        },
        "IN": same(None, "in, during, throughout"),
        "ON": same(None, "on"),
        "AT": same(None, "at, over, from"),
        "FROM": same(None, "since, until, till"),
        "THE": same(None, "the, the year, the month of, month of"),
        "OF": same(None, "of"),
        "AND": same(None, "and, or"),
        "FUNC": same(
            None,
            "i, you, he, she, we, they, it, me, us, him, them, my, your, his, her, our, their, its, who, whom, what, "
            "when, where, which, while, why, how, and, or, but, so, because, if, as, than, that, there, here, then, "
            "did, do, does, done, is, was, were, are, be, been, am, had, has, have, will, would, can, could, should, "
            "shall, might, must, with, without, for, to, by, before, after, about, around, near, into, onto, "
            "not, no, again, also, only, too, together, instead, regarding, alone",
        ),
        "NOT": same(
            None,
            "the next, my last, your last, his last, her last, our last, their last, its last, very last, "
            "every last, each last, may day",
        ),
    },
    shapes="""
        THE? (MONTH|MAY) DOT? THE? ORD (COMMA? YEAR)?
        (MONTH|MAY|MON) DOT? NUM COMMA? YEAR
        (MONTH|MON) DOT? NUM
        (IN|ON|FROM|AND) (MAY) NUM ~PLAIN
        (NUM|ORD) OF? (MON|MAY) DOT? COMMA? YEAR
        THE? ORD OF? (MON|MAY)
        (WEEKDAY|WDAY) DOT? COMMA? (MONTH|MON|MAY) DOT? (NUM|ORD) (COMMA? YEAR)?
        THE? NTH OF (MONTH|MAY) (COMMA? YEAR)?
        (MONTH|MAY) THE? NTH
        (MON|MAY) DOT? COMMA? OF? YEAR
        (IN|FROM) MAY ~APOS
        REL MAY (?!PLAIN|NAME|FUNC|APOS)
        (IN|FROM) MAY (AND|COMMA) : MONTH
        (IN|FROM) MONTH (AND|COMMA) : MAY
        EDGE DASH? MAY (COMMA? YEAR)?
        (NTH|ORD|REL|PAST) UNIT OF MAY (COMMA? YEAR)?
        MAY OF? REL UNIT
        (ON|FROM) WEEKDAY (IN THE)? PART? ~PLAIN ~NAME
        (AT|IN|ON|FROM) THE UNIT ~OF
    """,
    ordinals=frozenset(("st", "nd", "rd", "th")),
    cues={
        "past": (
            r"was|were|wasn't|weren't|had|did|didn't|went|got|came|saw|met|took|made|gave|found|bought|brought|"
            r"told|said|left|lost|won|ran|ate|drank|drove|flew|wrote|spoke|felt|kept|held|sent|spent|slept|heard|"
            r"thought|taught|caught|began|started|sold|paid|built|broke|chose|fell|grew|knew|wore|woke|sang|sat|"
            r"stood|swam|rode|threw|hung|hit it|i put|i read|i cut|i set|been|gone|done|finally|"
            r"just (?!\w+ing\b)\w+ed|(?!(?:need|speed|feed|seed|indeed|hundred|exceed|proceed|succeed|embed|shed|"
            r"sled|bleed|breed|weed|creed|deed|greed|sacred|naked|wicked|interested|excited|thrilled|based|"
            r"related|red|bed|wed|ted|fred|unread)\b)[a-z]{2,}ed"
        ),
        "future": (
            r"will|won't|gonna|going to|shall|(?:i|you|he|she|it|we|they|that|there)'ll|let's|let us|(?:need|have|"
            r"has|got|want|hope|plan|like|love) to|(?:hoping|planning|trying|wanting|aiming) to|"
            r"(?:thinking|considering)(?: (?:of|about))?(?= \w+ing)|must|should|can|"
            r"could you|would you|please|remind me|remember to|don't forget|can't wait|looking forward|(?:is|are|"
            r"am|i'm|we're|he's|she's|they're|it's|that's) (?:\w+ )?(?:due|scheduled|booked|coming|going|having|"
            r"meeting|leaving|starting|getting|flying|moving|seeing|visiting|taking|doing|hosting|giving|throwing|"
            r"heading|arriving|planned|opening|closing)|is|are|deadline|due|upcoming|see you|coming up|"
            r"'s coming|tomorrow|later this|starts|ends|arrives|leaves|begins|comes"
        ),
        "habit": (r"always|usually|every|each|often|normally|typically|never|sometimes|per"),
        "unsure": (
            r"(?:is|are|was|were) (?:\w+ )?(?:closed|open|shut)|opens|closes|"
            r"wanted|planned to|supposed|agreed|decided|promised|meant to|hoped|scheduled|going to have been|"
            r"was going|were going|would|might|if|birthdays?|anniversary|annual(?:ly)?|yearly|born|holidays?|"
            r"how (?:many|often)|example|e\.g|used to"
        ),
    },
)
