"""Chinese, in both scripts."""

from __future__ import annotations

from mcp_memory.when.vocabulary import Language, each, same

_NUMBER = r"\d{1,2}|[一二三四五六七八九十廿卅]{1,3}"
_WEEKS = {"上上": -2, "上": -1, "这": 0, "這": 0, "本": 0, "下": 1, "下下": 2}
_WEEK = ("周", "週", "星期", "礼拜", "禮拜", "个星期", "個星期", "个礼拜", "個禮拜")
_DAYS = each(range(7), "一; 二; 三; 四; 五; 六; 日, 天")
_MEASURES = {"week": ("星期", "礼拜", "禮拜"), "month": ("月",), "quarter": ("季度",)}

LANGUAGE = Language(
    spaced=False,
    words={
        "FEW": {
            **same((2, 3), "两三, 兩三, 二三"),
            **same((2, 5), "几, 幾, 好几, 好幾"),
        },
        "UNIT": {
            **each(
                ("minute", "hour", "day", "week", "year"),
                "分钟, 分鐘; 小时, 小時, 钟头, 鐘頭; 天; 周, 週, 星期, 礼拜, 禮拜; 年",
            ),
            **{measure + word: unit for unit, words in _MEASURES.items() for word in words for measure in "个個"},
            **same("hour", "个小时, 個小時, 个钟头, 個鐘頭"),
            **same("weekend", "个周末, 個週末"),
        },
        "AMOUNT": {
            **same(("month", 6), "半年"),
            **same(("day", 15), "半个月, 半個月"),
            **same(("minute", 30), "半小时, 半小時, 半个小时, 半個小時"),
        },
        "WEEKDAY": {week + day: value for week in _WEEK[:5] for day, value in _DAYS.items()},
        "WEEKOF": {
            f"{rel}{week}{day}": (shift, value)
            for rel, shift in _WEEKS.items()
            for week in _WEEK
            for day, value in _DAYS.items()
        },
        "SHIFT": {
            **{rel + week: ("week", shift) for rel, shift in _WEEKS.items() for week in _WEEK},
            **{f"{rel}{measure}月": ("month", shift) for rel, shift in _WEEKS.items() for measure in ("", "个", "個")},
            **{
                f"{rel}{measure}{end}": ("weekend", shift)
                for rel, shift in _WEEKS.items()
                for measure in ("", "个", "個")
                for end in ("周末", "週末")
            },
            **same(("weekend", None), "周末那天, 周末那两天"),
            **each(
                [("year", n) for n in (-3, -2, -1, 0, 1, 2)], "大前年; 前年; 去年, 上一年; 今年, 本年; 明年; 后年, 後年"
            ),
            **same(("month", -1), "上一个月, 上一個月"),
            **same(("week", -1), "上一周, 上一週, 上一个星期, 上一個星期"),
            **same(("quarter", -1), "上季度, 上个季度, 上個季度"),
            **same(("quarter", 0), "这个季度, 這個季度, 本季度"),
        },
        "SEASON": each(range(4), "春天, 春季; 夏天, 夏季; 秋天, 秋季; 冬天, 冬季"),
        "QUARTER": each(range(1, 5), "第一季度, 一季度; 第二季度, 二季度; 第三季度, 三季度; 第四季度, 四季度"),
        "PART": each(
            ((0, 6), (4, 12), (11, 14), (12, 18), (17, 24), (18, 30)),
            "凌晨; 早上, 早晨, 上午, 清晨; 中午; 下午; 傍晚, 晚上, 晚间; 夜里, 夜裡, 深夜, 半夜",
        ),
        "FEAST": {
            **same((1, 1), "元旦"),
            **same((2, 14), "情人节, 情人節"),
            **same((5, 1), "五一那天, 五一节, 五一假期, 五一期间, 五一放假, 五一的时候, 劳动节, 勞動節"),
            **same((10, 1), "国庆, 国庆节, 国庆那天, 國慶, 國慶節"),
            **same((12, 24), "平安夜"),
            **same((12, 25), "圣诞节, 聖誕節, 圣诞, 聖誕"),
        },
        "DAY": each(range(-3, 4), "大前天; 前天, 前日; 昨天, 昨日; 今天, 今日; 明天, 明日; 后天, 後天; 大后天, 大後天"),
        "DAYPART": {
            **same((-2, (17, 30)), "前晚, 前天夜里"),
            **same((-1, (17, 30)), "昨晚, 昨夜"),
            **same((-1, (4, 12)), "昨早"),
            **same((0, (17, 30)), "今晚, 今夜"),
            **same((0, (4, 12)), "今早, 今晨"),
        },
        "PAST": same(
            True,
            "过去, 過去, 过去的, 過去的, 最近, 最近的, 最近这, 最近這, 过去这, 這, 这",
        ),
        "AGO": same(None, "前, 以前, 之前"),
        "EDGE": {
            **same((0, 1 / 3), "初, 年初, 月初, 初期"),
            **same((1 / 3, 2 / 3), "中旬, 中期"),
            **same((2 / 3, 1), "底, 末, 年底, 月底, 末期"),
            **same((0, 1 / 2), "上半年, 上半月"),
            **same((1 / 2, 1), "下半年, 下半月"),
        },
        "LATELY": {
            **same(("day", 2, 5), "前几天, 前幾天, 前些天, 前些日子"),
            **same(("day", 1, 3), "前两天, 前兩天"),
            **same(("week", 1, 8), "前阵子, 前一阵子, 前陣子"),
        },
        "NTHOF": each(
            [("day", 1), ("day", -1), ("week", 1), ("week", 2), ("week", 3), ("week", -1)],
            "第一天; 最后一天, 最後一天; 第一周, 第一个星期, 第一週; 第二周, 第二个星期, 第二週; 第三周, 第三个星期, "
            "第三週; 最后一周, 最后一个星期, 最後一週",
        ),
        "IN": same(None, "在, 于, 於"),
        "FROM": same(None, "从, 從, 自, 自从, 自從, 直到, 到, 起, 以来, 以來, 开始, 開始, 为止"),
        "OF": same(None, "的, 那天, 那个, 里, 裡"),
        "THAT": same(None, "后, 後, 内, 內, 以后, 之后"),
        "NOT": same(
            None,
            "五月天, 每天, 每周, 每週, 每星期, 每个星期, 每月, 每个月, 每個月, 每年, 前天津, 今日头条, 年级, 年代",
        ),
    },
    forms={
        "YEAR": r"(\d{4}|[〇零一二三四五六七八九]{4})年(?!前|级|代|间|後|后)",
        "MONTH": rf"({_NUMBER})月份?(?!天|饼)",
        "ORD": rf"({_NUMBER})[日号號](?!线|線|楼|樓|店|机|機|门|門|球|房|厅|廳|院|元|前|間|间)",
        "WORD": r"(\d{1,3}|[一二两兩三四五六七八九十]{1,3})",
    },
    shapes="""
        (SHIFT|YEAR) OF? MONTH OF? ORD? OF? PART?
        (SHIFT|YEAR) OF? MONTH EDGE
        (SHIFT|YEAR) OF? (SEASON|QUARTER|FEAST)
        (SHIFT|YEAR) EDGE
        MONTH ORD OF? PART?
        MONTH EDGE?
        SHIFT OF? ORD OF? PART?
        WEEKOF OF? PART?
        WEEKDAY OF? PART?
        DAY OF? PART?
        YEAR
        SHIFT ~THAT
        FEAST
        (SHIFT|YEAR)? OF? MONTH OF? NTHOF
        PAST (WORD|FEW) UNIT ~THAT
        (WORD|FEW) UNIT AGO OF? PART?
    """,
    cues={
        "past": (r"了|过(?!去|来|年)|過(?!去|來|年)|曾经|已经|已經|刚刚|剛剛"),
        "future": (
            r"会(?!议|員|员|计)|會(?!議|員|計)|要(?!求)|将|將|准备|準備|打算|计划|計劃|得(?=去|交|做)|记得|記得|应该|應該|请|請|提醒"
        ),
        "habit": (r"每|总是|總是|经常|經常|平时|平時"),
        "unsure": (r"生日|纪念日|紀念日|出生|如果|要是|本来|本來|原来"),
    },
)
