"""What is said of a tool result: its kind, one line, a preview; never more than the room there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.shortterm.synopsis.synopsis import Synopsis, synopsise

RESULTS = Path(__file__).parents[2] / "fixtures" / "results"
FIXTURES = sorted(path.name for path in RESULTS.iterdir())


def read(name: str) -> str:
    return (RESULTS / name).read_text(encoding="utf-8")


def of(name: str, **asked: object) -> Synopsis:
    return synopsise(read(name), tool="bash", **asked)  # type: ignore[arg-type]


TABLE = """
cargo_test.txt | tests | text/plain | 7 | cargo test: 2 of 6 failed: reads_amounts (assertion `left == right` failed: row 3 at src/import.rs:112); formats_negative (a minus sign belongs before the currency at src/money.rs:64)
change.diff | diff | text/x-diff | 4 | diff of 3 files, +7 −3: shop/auth/token.py, docs/tokens.md, shop/settings.py; in TokenVerifier, decode
config.txt | yaml | application/yaml | 6 | YAML, 8 values; host db-2.internal, port 5432, database ledger, pool_size 12, ssl_mode verify-full, application_name ledgerd, statement_timeout 30s, last_vacuum 2026-04-15 03:12
error.json | json | application/json | 6 | JSON, 5 values; request_id req_7f3a91, error, status 429; error: code rate_limited, message Too many requests, retry_after 37
events.jsonl | jsonl | application/jsonl | 6 | JSONL, 120 values; rows: 30 rows with ts, event, user, ms; event: login ×10, export ×10, delete ×10; user: usr_4100 ×5, usr_4101 ×5, usr_4102 ×4, usr_4103 ×4, usr_4104 ×4, usr_4105 ×4, usr_4106 ×4
find.txt | listing | text/plain | 4 | 20 files (18 .py, 1 .toml, 1 .md): ./pyproject.toml, ./shop/auth/__init__.py, ./shop/auth/models.py, ./shop/auth/views.py, ./shop/auth/errors.py
go_test.txt | tests | text/plain | 7 | go test: 2 of 3 failed: TestWriterFlush (writer_test.go:48: flush wrote 4 entries, want 5); TestReplay (replay_test.go:73: offset 1204: checksum mismatch)
grep.txt | matches | text/plain | 5 | 5 matches in 4 files: shop/auth/token.py (2), shop/auth/views.py (1), shop/mail/links.py (1) and 1 more
guide.md | markdown | text/markdown | 3 | 30 lines; 3 headings: Before you start, Close, Reopen; 2: name: month-end description: How to close a month in the ledger, step by step, and what to do when it does not balance
jest.txt | tests | text/plain | 7 | jest: 2 of 19 failed: charges the card once (Expected number of calls: 1); keeps the cart when the bank declines (TypeError: Cannot read properties of null (reading 'items'))
letter.txt | text | text/plain | 3 | 9 lines; 3: The move to the new harbour office happens on 12 May.; 3: Boxes come on the 9th; please pack your desk by noon on the 11th.; 6: After that we have eleven places under the building.
ls.txt | listing | text/plain | 6 | 8 entries (2 without extension, 1 .md, 1 .db): Makefile, README.md, pyproject.toml, docs, ledger.db
orders.csv | table | text/plain | 4 | table, 40 rows with order_id, customer, city, amount, status; order_id: ORD-88100, ORD-88101, ORD-88102, ORD-88103 … ORD-88139; customer: Lind & Co ×10, Okafor & Co ×10, Prado & Co ×10, Sato & Co ×10
page.html | html | text/html | 3 | page, 19 lines; 1: When the harbour ferry leaves, what it costs, and where to buy a ticket.; 11: The ferry leaves the old harbour every 20 minutes between 06:40 and 23:20, all days of the week.
panic_go.txt | traceback | text/plain | 8 | exit code 2: panic: runtime error: index out of range [5] with length 5 (/home/dev/ledger/internal/batch/writer.go:97, called from /home/dev/ledger/cmd/ledgerd/main.go:88)
panic_rust.txt | traceback | text/plain | 8 | panicked: called `Result::unwrap()` on an `Err` value: ParseIntError { kind: InvalidDigit } (src/import.rs:77, called from ./src/main.rs:19)
pods.txt | table | text/plain | 4 | table, 9 rows with NAME, READY, STATUS, RESTARTS, AGE; NAME: catalog-7d9f5c00-x0k, checkout-7d9f5c01-x1k, catalog-7d9f5c02-x2k, checkout-7d9f5c03-x3k … catalog-7d9f5c08-x8k; READY: 1/1 ×8, 0/1 ×1
pytest.txt | tests | text/plain | 7 | pytest: 3 of 51 failed: test_token_leeway (AssertionError: assert False); test_logout (assert 200 == 401); test_totals (FileNotFoundError: [Errno 2] No such file or directory: '…)
ripgrep.txt | matches | text/plain | 5 | 5 matches in 3 files: shop/auth/token.py (2), tests/test_login.py (2), shop/settings.py (1)
server.ts | code | text/typescript | 4 | TypeScript, 36 lines: defines CheckoutRequest, cartTotal, checkout, SessionStore
service.log | log | text/plain | 3 | 266 lines, 2026-04-16 22:10:00.000 to 2026-04-16 22:14:19.583; 122: ERROR payments.gateway charge ch_9Qx21 declined by bank_eu: timeout after 3000 ms; 191: ERROR payments.worker job 5512 failed
token.py.txt | code | text/x-python | 4 | Python, lines 101–137: defines Verdict, TokenVerifier, verify, decode of 5
traceback_java.txt | traceback | text/plain | 8 | java.lang.IllegalStateException: currency mismatch: EUR and SEK (Money.java:39 in org.acme.billing.Money.plus, called from Invoice.java:121 in org.acme.billing.Invoice.sum)
traceback_node.txt | traceback | text/plain | 8 | TypeError: Cannot read properties of undefined (reading 'amount') (/srv/web/dist/routes/cart.js:118, called from /srv/web/dist/routes/checkout.js:52 in checkout)
traceback_python.txt | traceback | text/plain | 8 | shop.errors.MigrationError: 0042_ledger.toml has no tables (/srv/app/shop/migrate.py:67 in apply)
tree.txt | listing | text/plain | 6 | 8 entries (5 .py, 1 .md): README.md, auth, auth/__init__.py, auth/token.py, cart
tsc.txt | text | text/plain | 3 | 3 lines; 1: src/checkout.ts:14:9: error TS2322: Type 'string' is not assignable to type 'number'.; 2: src/checkout.ts:31:22: error TS2531: Object is possibly 'null'.
unittest.txt | tests | text/plain | 7 | unittest: 2 of 12 failed: test_export (KeyError: '.ods'); test_rounding (AssertionError: Money('0.13') != Money('0.12'))
users.json | json | application/json | 6 | JSON, 129 values; users: 18 rows with id, name, email, city, plan, active; users.name: Maya Lind 0, Tom Okafor 1, Ines Prado 2, Jun Sato 3 … Rita Voss 17; users.plan.name: free ×9, team ×9
vitest.txt | tests | text/plain | 7 | vitest: 1 of 13 failed: parses Swedish amounts (AssertionError: expected 1234.5 to be 1234.56 // Object.is…)
"""
"""Of each fixture: its name, kind, type and score, and the summary."""
SUMMARIES = {name: said for name, *said in (row.split(" | ") for row in TABLE.strip().split("\n"))}


def test_every_fixture_has_its_summary_here() -> None:
    assert sorted(SUMMARIES) == FIXTURES


@pytest.mark.parametrize("name", FIXTURES)
def test_a_result_is_recognised_and_said_in_one_line(name: str) -> None:
    made = of(name)
    assert [made.kind, made.content_type, str(made.score), made.summary] == SUMMARIES[name]


# --- previews ----------------------------------------------------------------------------------------

PREVIEWS = {
    "users.json": [
        "users.city: Lisbon ×4, Graz ×4, Turku ×4, Leeds ×3, Brno ×3",
        "users.active: true in all",
        "users[0] usr_4100 user0@example.org",
        "users[1] usr_4101 user1@example.org",
        "users[2] usr_4102 user2@example.org",
        "users[3] usr_4103 user3@example.org",
        "users[4] usr_4104 Berg user4@example.org",
        "users[5] usr_4105 user5@example.org",
        "users[6] usr_4106 user6@example.org",
        "users[7] usr_4107 user7@example.org",
        "users[8] usr_4108 user8@example.org",
        "users[9] usr_4109 user9@example.org",
        "users[11] usr_4111 user11@example.org",
        "users[12] usr_4112 user12@example.org",
        "users[13] usr_4113 user13@example.org",
        "users[15] usr_4115 user15@example.org",
        "users[16] usr_4116 user16@example.org",
        "users[17] usr_4117 user17@example.org",
        "next page",
    ],
    "orders.csv": [
        "city: Lisbon ×8, Graz ×8, Turku ×8, Leeds ×8, Brno ×8",
        "amount: 5.00 (ORD-88100) to 470.10 (ORD-88129)",
        "status: paid ×29, open ×10, refunded ×1",
        "rows[23] ORD-88123, status refunded",
        "1: order_id,customer,city,amount,status",
        "2: ORD-88100,Lind & Co,Lisbon,5.00,open (40 alike)",
        "3: ORD-88101,Okafor & Co,Graz,296.90,paid",
        "4: ORD-88102,Prado & Co,Turku,88.80,paid",
        "31: ORD-88129,Okafor & Co,Brno,470.10,paid",
        "38: ORD-88136,Lind & Co,Graz,13.40,open",
        "39: ORD-88137,Okafor & Co,Turku,305.30,paid",
        "40: ORD-88138,Prado & Co,Leeds,97.20,paid",
        "41: ORD-88139,Sato & Co,Brno,389.10,paid",
    ],
    "service.log": [
        "levels: INFO ×251, WARN ×7, ERROR ×2",
        "1: INFO http.access GET /v2/orders/88100 200 in 0 ms (251 alike)",
        "8: WARN http.pool connection 21 to db-1 was slow: 77 ms (7 alike)",
        "168: WARN http.pool connection 501 to db-2 was slow: 1837 ms",
        "192: Traceback (most recent call last):",
        '193: File "/srv/app/payments/worker.py", line 88, in run (2 alike)',
        "194: receipt = build_receipt(job.order)",
        "196: total = sum(line.amount for line in order.lines)",
        "197: TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'",
        "254: WARN http.pool connection 741 to db-1 was slow: 2717 ms",
        "265: INFO http.access GET /v2/orders/88358 200 in 6 ms",
        "266: INFO http.access GET /v2/orders/88359 200 in 13 ms",
    ],
    "traceback_python.txt": [
        "before it: KeyError: 'tables', /srv/app/shop/schema.py:31 in load_schema, /srv/app/shop/migrate.py:64 in apply",
        "4 main()",
        "6 run_from_args(sys.argv)",
        "12 schema = load_schema(path)",
        '14 return tomllib.loads(path.read_text())["tables"]',
        "16 KeyError: 'tables'",
        '22 raise MigrationError(f"{path.name} has no tables") from error',
    ],
    "pytest.txt": [
        "2 failed, 1 error, 48 passed (line 89)",
        "✗ tests/test_login.py::test_token_leeway: AssertionError: assert False (line 68)",
        "✗ tests/test_login.py::test_logout: assert 200 == 401 (line 77)",
        "✗ tests/test_report.py::test_totals: FileNotFoundError: [Errno 2] No such file or directory: 'books.csv' (line 59)",
        "62: def books():",
        "66: tests/test_report.py:9: FileNotFoundError",
        "76: tests/test_login.py:34: AssertionError (2 alike)",
        '81: > assert client.get("/me").status_code == 401',
        "84: tests/test_login.py:58: AssertionError",
        "87: FAILED tests/test_login.py::test_logout - assert 200 == 401",
        "88: ERROR tests/test_report.py::test_totals - FileNotFoundError: [Errno 2] No such file or directory: 'books.csv'",
    ],
    "change.diff": [
        "shop/auth/token.py +3 −3 (line 1): TokenVerifier, decode",
        "docs/tokens.md +3 −0, new file (line 31)",
        "shop/settings.py +1 −0 (line 23)",
        "5 @@ -28,10 +28,11 @@ class TokenVerifier:",
        "9 - def verify(self, token: str) -> Verdict:",
        "10 + def verify(self, token: str, *, leeway: int = 0) -> Verdict:",
        "12 - if claims.expires < now():",
        "13 + if claims.expires + leeway < now():",
        '15 + log.debug("token of %s accepted", claims.subject)',
        "18 @@ -60,4 +61,3 @@ def decode(token: str, key: bytes) -> Claims:",
        "20 - check_signature(header, body, signature, key)",
        "27 @@ -12,2 +12,3 @@ SESSION_HOURS = 12",
        "29 +TOKEN_LEEWAY_SECONDS = 30",
        "36 @@ -0,0 +1,3 @@",
        "37 +# Tokens",
        "39 +A token that expired up to 30 seconds ago is still accepted.",
    ],
    "guide.md": [
        "6: Closing a month",
        "8: The ledger is closed on the third working day.",
        "8 … below assumes bank, statements, nobody posting",
        "13: - Check that the importer has no open files.",
        "14 … finance channel stops, dry-run",
        "25: Run `ledgerctl diff --month 2026-03` and look at account 2440 first: nine times out of ten it is an invoice in SEK booked as EUR.",
        "30: See the policy.",
        "30 … Only owner books",
    ],
    "page.html": [
        "3 … timetable prices, HomeTicketsSkip",
        "12 … Summer 07:00 07:20",
        "14: From 1 June to 31 August a second boat runs on the route to Fjordholm, with room for 140 people & 20 bicycles.",
        "16: Adult, single: 38 kr – children under 7 travel free with an adult who has a valid ticket",
        "17 … Bicycle",
        "18: Lost something? Write to lost and found with the time of your trip.",
    ],
    "server.ts": [
        "imports: node:http, ./types",
        "1 … createServer Cart Money",
        "4 … interface CheckoutRequest cartId string returnUrl RETRIES",
        "11 … cartTotal cart.items.reduce item sum.plus item.price zero cart.currency",
        "15 … checkout request Promise loadCart request.cartId attempt session openSession request.returnUrl session.ok session.url",
        "23 … Error bank answer attempts",
        "26 … SessionStore readonly sessions remember this.sessions.set",
        "34 … response response.end JSON.parse body listen 8080",
    ],
}


@pytest.mark.parametrize("name", list(PREVIEWS))
def test_a_preview_keeps_what_the_type_calls_for(name: str) -> None:
    assert of(name, budget_chars=700).preview.split("\n") == PREVIEWS[name]


def test_a_result_within_the_budget_is_its_own_preview() -> None:
    assert of("config.txt").preview == read("config.txt")


def test_line_numbers_are_those_of_the_raw_text_and_the_file_s_are_told() -> None:
    made = of("token.py.txt", arguments={"path": "shop/auth/token.py"}, budget_chars=600)
    raw = read("token.py.txt").split("\n")
    rows = [row.split(" ", 1) for row in made.preview.split("\n") if row.split(" ")[0].isdigit()]
    shown = [(number, text.split(" … ")[0] if text[0] != "…" else text.split()[1]) for number, text in rows]
    assert len(shown) > 2
    assert all(text.rstrip(",") in raw[int(number) - 1] for number, text in shown)
    assert "line 1 is 101 of the file" in made.preview


def test_a_piece_cut_by_sed_says_where_it_lies_in_its_file() -> None:
    code = "".join(f"def step_{n}(value):\n    return value + {n}\n\n" for n in range(60))
    made = synopsise(code, tool="bash", arguments={"command": "sed -n '430,610p' shop/steps.py"})
    assert made.summary.startswith("Python shop/steps.py, lines 430–609: defines ")


def test_what_the_call_asked_for_is_shown_over_what_it_did_not() -> None:
    rows = "".join(
        f"entry {n} of the ledger was booked by {'abcdefghij'[n % 10] * (1 + n // 10)}\n" for n in range(400)
    )
    raw = rows.replace("entry 271 of", "entry 271 about the kingfisher of")
    assert "; 272: entry 271 about the kingfisher" in synopsise(raw, tool="r", arguments={"q": "kingfisher"}).summary
    assert "\n272: entry 271 about the kingfisher" in synopsise(raw, tool="r", talk="Saw a kingfisher?").preview


def test_rows_of_json_that_were_asked_for_are_among_those_shown() -> None:
    raw = json.dumps([{"id": n, "name": f"bird {n}", "seen": [n, 3 * n, "2026-05-01"]} for n in range(300)])
    made = synopsise(raw, tool="find", arguments='{"name": "bird 217"}')
    assert "bird 217" in f"{made.summary}\n{made.preview}"


def test_wrapping_with_an_exit_code_is_taken_off() -> None:
    raw = f"<returncode>2</returncode>\n<output>\n{read('traceback_python.txt')}</output>"
    made = synopsise(raw, tool="bash", budget_chars=500)
    assert made.summary == f"exit code 2: {SUMMARIES['traceback_python.txt'][3]}"
    assert "25 shop.errors" not in made.preview  # the summary says it
    assert "12 schema" not in made.preview  # lines are those of the raw text
    assert "\n14 schema = load_schema(path)" in made.preview


def test_json_that_is_cut_off_says_so_and_tells_no_torn_row() -> None:
    made = synopsise(read("users.json")[:1500], tool="http")
    assert made.kind == "json"
    assert made.summary.startswith("JSON, 72 values (cut off after line 1); ")
    assert "users: 10 rows with id, name, email, city, plan, active" in made.summary


def test_json_that_is_nested_too_deep_is_described_by_its_text() -> None:
    made = synopsise("[" * 10_000 + "]" * 10_000, tool="x")
    assert (made.kind, made.summary[:12]) == ("text", "1 line; 1: [")


def test_large_json_is_counted_whole() -> None:
    made = synopsise(json.dumps([{"id": n, "name": "x" * 90} for n in range(50_000)]), tool="x")
    assert made.summary.startswith("JSON, 100,000 values; rows: 50,000 rows with id, name; ")


@pytest.mark.parametrize(
    ("raw", "kind", "summary"),
    [
        ("", "empty", "empty result"),
        (" \n\n\t\n", "empty", "blank result: nothing visible"),
        ("\x1b[0m\x1b@\n", "empty", "blank result: nothing visible"),
        ("<returncode>0</returncode>\n<output>\n</output>", "empty", "no output, exit code 0"),
        ("\x00\x01\x02PNG\x00" * 50, "binary", "bytes that are no text, 350 chars; readable in it: nothing"),
        ("ok\n", "text", "ok"),
        (
            "GET /item/7 200\n" * 60,
            "text",
            "60 lines; 1: GET /item/7 200 (×60); 59: GET /item/7 200; 60: GET /item/7 200",
        ),
        ("x " * 900, "text", "one line of 1,800 chars: " + "x " * 86 + "x…"),
    ],
)
def test_what_has_no_type_is_said_plainly(raw: str, kind: str, summary: str) -> None:
    made = synopsise(raw, tool="x")
    assert (made.kind, made.summary) == (kind, summary)


@pytest.mark.parametrize("name", [n for n in FIXTURES if not n.endswith((".json", ".jsonl", ".html"))])
def test_colours_of_a_terminal_change_nothing(name: str) -> None:
    coloured = "\n".join(f"\x1b[1;32m{line}\x1b[0m" if line else "" for line in read(name).split("\n"))
    assert synopsise(coloured, tool="bash").summary == of(name).summary


# --- laws --------------------------------------------------------------------------------------------

PIECES = sorted({line for name in FIXTURES for line in read(name).split("\n")})
ODD = [
    "\x00",
    "\ud800",
    "\x1b[31m",
    "[" * 3000,
    "{" * 900,
    '"' * 99,
    "<![x",
    "<a b='",
    "&#99999999999;",
    "\r",
    "\x1b@",
    "\u2028",
    "`" * 50,
]


def documents() -> st.SearchStrategy[str]:
    line = st.one_of(st.sampled_from(PIECES), st.sampled_from(ODD), st.text(max_size=40))
    return st.one_of(
        st.text(max_size=2000),
        st.lists(line, max_size=60).map("\n".join),
        st.builds(
            lambda name, a, b: read(name)[a : a + b],
            st.sampled_from(FIXTURES),
            st.integers(0, 3000),
            st.integers(0, 4000),
        ),
        st.builds(lambda piece, n: piece * n, line, st.integers(1, 300)),
    )


@settings(max_examples=100, deadline=None)
@given(
    text=documents(),
    arguments=st.one_of(
        st.none(), st.text(max_size=40), st.dictionaries(st.text(max_size=5), st.sampled_from(PIECES), max_size=3)
    ),
    talk=st.text(max_size=60),
    budget=st.integers(0, 1500),
)
def test_any_text_gives_a_synopsis_within_its_bounds_and_the_same_one_again(
    text: str, arguments: object, talk: str, budget: int
) -> None:
    made = synopsise(text, tool="x", arguments=arguments, talk=talk, budget_chars=budget)
    assert len(made.preview) <= budget
    assert 0 < len(made.summary) <= 200
    assert "\n" not in made.summary
    assert 0 <= made.score <= 10
    (made.summary + made.preview).encode("utf-8")
    assert synopsise(text, tool="x", arguments=arguments, talk=talk, budget_chars=budget) == made


@pytest.mark.parametrize(
    "text",
    [
        "a" * 5_000_000,
        "\n" * 5_000_000,
        "<html>" + "<!--" * 300_000,
        "<html>" + "<a b='" * 200_000,
        '{"a":' * 200_000,
        "2026-01-02 03:04:05 INFO started\n" * 400_000,
        "int " * 300_000,
    ],
    ids=["letters", "newlines", "comments", "tags", "objects", "log", "words"],
)
def test_the_synopsis_of_a_huge_result_is_within_its_bounds(text: str) -> None:
    made = synopsise(text, tool="x", budget_chars=800)
    assert len(made.preview) <= 800
    assert len(made.summary) <= 200


# --- documents ---------------------------------------------------------------------------------------

GUIDE = """# Badge guide

## Steps

1. Choose the frame of the badge from the catalogue.
2. Write the badge as in the template.

## Template

```json
{
  "canvas": {
    # "the size in pixels",
    "width": 1080,
    "height": 1920
  },
  "header": {
    "fontFamily": "Ferry Sans",
    "strokeWidth": 4,
    "textShadow": "none"
  },
  "footer": {
    "caption": "harbour office",
    "bubbleType": "speech"
  }
}
```

## Print

Print the badge on card of 300 grams, and cut the corners with the round cutter of the workshop.
"""


def test_code_between_fences_does_not_hide_that_a_document_is_markdown() -> None:
    fields = "".join(f'  "field{n}": {{"width": {n}}},\n' for n in range(40))
    assert synopsise(GUIDE.replace("{\n", f"{{\n{fields}", 1), tool="read_file").kind == "markdown"


def test_code_of_a_document_is_told_by_key_words_not_quoted_as_sentences() -> None:
    made = synopsise(GUIDE, tool="read_file", budget_chars=450)
    assert "fontFamily" in made.preview
    assert '"' not in made.preview


def test_a_statement_about_a_document_that_the_summary_has_no_room_for_is_told_whole_by_the_preview() -> None:
    parts = "".join(f"## {name} of the office\n\n" for name in ("Ferries", "Desks", "Keys"))
    weeks = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
    pack = "Pack the boxes of this floor, and write on each of them what is in it and who will need it first."
    steps = "".join(f"### The {week} week, at noon\n\n{pack}\n\n" for week in weeks)
    made = synopsise(f"# Moving\n\n{parts}{steps}", tool="read_file")
    assert "8 headings" not in made.summary
    assert "The eighth week, at noon" in made.preview
