"""The pages over HTTP: who is answered, with which headers, and what stands in the answers."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import pytest
from starlette.types import Message

from mcp_memory.core.types import NewTurn
from mcp_memory.ui import pages
from mcp_memory.ui.app import COOKIE
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import el
from mcp_memory.ui.responses import MOST_FORM
from mcp_memory.ui.sessions import OneTimeKeys, Reader
from tests.ui.browsing import BASE, HOST, OWN, Browser, browsing, form_of

pytestmark = pytest.mark.anyio

WAIT = 10


# --- who is answered --------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "localhost:4321", "127.0.0.1", f"{HOST}0", f"x@{HOST}", ""])
async def test_another_host_is_misdirected(browser: Browser, host: str) -> None:
    answer = await browser.open("/review", Host=host)
    assert answer.status_code == 421
    assert "<" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": f"http://{HOST}"},
        {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
        {"Origin": f"https://{HOST}", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://127.0.0.1:9999", "Sec-Fetch-Site": "same-site"},
        {**OWN, "Sec-Fetch-Site": "cross-site"},
        {**OWN, "Sec-Fetch-Site": "none"},
    ],
)
async def test_a_form_from_elsewhere_changes_nothing(browser: Browser, headers: dict[str, str]) -> None:
    form = {"form_token": await browser.token(), "text": "Planted."}
    answers = [
        await browser.post(f"{BASE}/default/do/remember", data=form, headers=headers),
        await browser.post(f"{BASE}/.enter", data={"key": "x"}, headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert await browser.memory.atoms() == []


async def test_a_form_without_the_token_of_its_session_changes_nothing(home: Path) -> None:
    async with browsing(home) as browser, browsing(home) as other:
        for token in ("", "x", await other.token()):
            form = {"form_token": token, "text": "Planted."}
            answer = await browser.post(f"{BASE}/default/do/remember", data=form, headers=OWN)
            assert answer.status_code == 403
        assert await browser.memory.atoms() == []


@pytest.mark.parametrize("path", ["/", "/review", "/a1", "/events", "/download/r-0123456789ab", "/go?space=job", "/x"])
async def test_without_a_session_there_is_the_form_for_a_key_and_nothing_else(home: Path, path: str) -> None:
    async with browsing(home, None) as browser:
        answer = await browser.open(path)
        assert answer.status_code == 401
        assert form_of(answer.text) == {}
        asked = path if path in ("/", "/review", "/a1", "/x") else "/"
        assert re.findall(r'<form [^>]*action="([^"]*)"', answer.text) == [
            f"{BASE}/.enter?{urlencode({'to': f'/default{asked}'})}"
        ]
        as_json = await browser.open(path, Accept="application/json")
        assert (as_json.status_code, [*as_json.json()]) == (401, ["error"])


async def test_a_key_becomes_a_cookie_for_the_path_of_this_interface_alone(home: Path) -> None:
    async with browsing(home, None) as browser:
        assert (await browser.get(f"{BASE}/")).status_code == 200
        answer = await browser.enter(f" {browser.keys.new()}\n")  # type: ignore[attr-defined]
        assert (answer.status_code, answer.headers["location"]) == (303, f"{BASE}/default/")
        name, _, rest = answer.headers["set-cookie"].partition("=")
        assert name == COOKIE
        assert sorted(rest.split("; ")[1:]) == ["HttpOnly", "Max-Age=2592000", f"Path={BASE}/", "SameSite=strict"]
        assert (await browser.open("/review")).status_code == 200
        again = await browser.get(f"{BASE}/")
        assert (again.status_code, again.headers["location"]) == (303, f"{BASE}/default/")


async def test_who_signs_in_goes_on_to_the_page_that_was_asked_for(home: Path) -> None:
    keys = OneTimeKeys(Reader(space="default"))
    async with browsing(home, None, keys) as browser:
        await browser.memory.remember("Tamsin lives in Bergen.", typed=True)
        entry = (await browser.open("/search?q=caf%C3%A9+noir&in=turns")).text
        action = unescape(*re.findall(r'<form [^>]*action="([^"]*)"', entry))
        wrong = (await browser.post(action, data={"key": "wrong"}, headers=OWN)).text
        assert unescape(*re.findall(r'<form [^>]*action="([^"]*)"', wrong)) == action
        entered = await browser.post(action, data={"key": keys.new()}, headers=OWN)
        assert entered.headers["location"] == f"{BASE}/default/search?q=caf%C3%A9+noir&in=turns"


@pytest.mark.parametrize(
    "to", ["//evil.example/", "/\\evil.example", "https://evil.example", "/default/../../x", "", "x"]
)
async def test_who_signs_in_goes_nowhere_else(home: Path, to: str) -> None:
    keys = OneTimeKeys(Reader(space="default"))
    async with browsing(home, None, keys) as browser:
        entered = await browser.post(f"{BASE}/.enter", params={"to": to}, data={"key": keys.new()}, headers=OWN)
        assert entered.headers["location"] == f"{BASE}/default/"


async def test_who_may_not_see_the_space_that_was_asked_for_goes_to_the_own_one(home: Path) -> None:
    keys = OneTimeKeys(Reader(space="job", spaces=("job",)))
    async with browsing(home, None, keys) as browser:
        entered = await browser.post(f"{BASE}/.enter?to=/default/a1", data={"key": keys.new()}, headers=OWN)
        assert entered.headers["location"] == f"{BASE}/job/"


async def test_a_wrong_key_is_told_and_the_twenty_first_has_to_wait(home: Path) -> None:
    async with browsing(home, None) as browser:
        answers = [await browser.enter("wrong") for _ in range(21)]
        assert [answer.status_code for answer in answers] == [403] * 20 + [429]
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        assert COOKIE not in browser.cookies


async def test_a_session_that_is_left_is_over(browser: Browser) -> None:
    cookie = browser.cookies[COOKIE]
    left = await browser.do("leave")
    assert (left.status_code, left.headers["location"]) == (303, f"{BASE}/")
    browser.cookies.set(COOKIE, cookie)
    assert (await browser.open("/review")).status_code == 401


async def test_logging_out_everywhere_ends_the_sessions_of_all_browsers(home: Path) -> None:
    async with browsing(home) as browser:
        keys = browser.keys
        assert isinstance(keys, OneTimeKeys)
        async with Browser(browser.interface, browser.memory, keys) as other:
            await other.enter(keys.new())
            assert "2 browsers are signed in" in (await other.open("/home")).text
            assert (await other.open("/review")).status_code == 200
            await browser.do("leave_everywhere")
            assert (await other.open("/review")).status_code == 401


async def test_a_session_ends_with_what_opened_it(home: Path) -> None:
    class Revocable(OneTimeKeys):
        is_good = True

        async def resume(self, proof: str) -> Reader | None:
            return await super().resume(proof) if self.is_good else None

    keys = Revocable(Reader(space="default"))
    async with browsing(home, None, keys) as browser:
        await browser.enter(keys.new())
        assert (await browser.open("/review")).status_code == 200
        keys.is_good = False
        assert (await browser.open("/review")).status_code == 401
        keys.is_good = True
        assert (await browser.open("/review")).status_code == 401


async def test_a_space_that_is_not_the_readers_reads_like_one_that_is_not_there(home: Path) -> None:
    async with browsing(home, Reader(space="default", spaces=("default", "job"))) as browser:
        await browser.memory.in_space("secret").remember("Hidden.", typed=True)
        answers = [await browser.open("/a1", space) for space in ("secret", "nothing", "sec%2Fret")]
        assert {(answer.status_code, answer.text) for answer in answers} == {(404, answers[0].text)}
        assert (await browser.open("/go?space=secret")).status_code == 404
        assert (await browser.open("/go?space=job")).headers["location"] == f"{BASE}/job/"


@pytest.mark.parametrize(
    ("came", "to"),
    [
        ("/search?q=night+boat&cursor=c1", "/search?q=night+boat"),
        ("/people", "/people"),
        ("/entity/Bergen", "/entity/Bergen"),
        ("/session/talk?start=40", "/session/talk"),
        ("/session/elsewhere", "/"),
        ("/nothing", "/"),
        ("/a1", "/"),
        ("/t1?for=a1", "/"),
        ("/forget?ids=a1", "/"),
        ("/do/remember", "/"),
        ("", "/"),
    ],
)
async def test_another_space_opens_at_the_same_page_where_it_has_one(browser: Browser, came: str, to: str) -> None:
    job = browser.memory.in_space("job")
    await job.record_turns([NewTurn(role="user", content="I live in Bergen.")], session="talk")
    await job.remember("Lives in Bergen", entity="Bergen", relation="is", value="home", typed=True)
    referer = f"http://{HOST}{BASE}/default{came}" if came else "http://evil.example/people"
    gone = await browser.open("/go?space=job", Referer=referer)
    assert gone.headers["location"] == f"{BASE}/job{to}"


async def test_a_reader_with_the_right_read_sees_no_forms_that_change_anything(home: Path) -> None:
    async with browsing(home, Reader(space="default", right="read")) as browser:
        await browser.memory.remember("Tamsin lives in Bergen.", typed=True)
        page = (await browser.open("/a1")).text
        assert re.findall(r'<form [^>]*method="post" action="([^"]*)"', page) == [f"{BASE}/default/do/leave"]


# --- headers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/default/review", "/default/nothing", "/", "/.static/page.js", "/.static/nothing"])
async def test_every_answer_has_the_headers_that_keep_it_to_itself(browser: Browser, path: str) -> None:
    headers = (await browser.get(BASE + path)).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        **{f"{kind}-src": "'self'" for kind in ("script", "style", "img", "connect")},
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    static = path.startswith("/.static/page")
    assert headers["cache-control"] == ("private, no-cache" if static else "no-store")


async def test_static_files_are_these_and_are_asked_for_again_only_when_new(home: Path) -> None:
    async with browsing(home, None) as browser:
        sizes = dict[str, int]()
        for name in ("page.css", "page.js", "build.js", "map.js", "enter.js", "icon.svg"):
            answer = await browser.get(f"{BASE}/.static/{name}")
            assert answer.status_code == 200
            sizes[name] = len(answer.content)
            again = await browser.get(f"{BASE}/.static/{name}", headers={"If-None-Match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        assert sizes["page.css"] <= 27_000
        assert sum(size for name, size in sizes.items() if name.endswith(".js")) <= 28_500
        for name in ("app.html", "..%2fapp.py", "%2e%2e%2fapp.py", "page.css/", ""):
            assert (await browser.get(f"{BASE}/.static/{name}")).status_code == 404


# --- pages ------------------------------------------------------------------------------------------


def made_by(page: Callable[[View], Awaitable[Page]]) -> Callable[[str], Callable[[View], Awaitable[Page]]]:
    """Return what finds this page, whatever the address."""

    def find(_name: str) -> Callable[[View], Awaitable[Page]]:
        return page

    return find


async def test_a_page_stands_in_its_frame_and_all_addresses_are_of_its_space(browser: Browser) -> None:
    await browser.memory.remember("Tamsin lives in Bergen.", typed=True)
    await browser.memory.in_space("on the quay").remember("The office is on the quay.", typed=True)
    page = (await browser.open("/review", "on%20the%20quay")).text
    addresses = re.findall(r' (?:href|action|src)="([^"]*)"', page)
    base = f"{BASE}/on%20the%20quay/"
    assert [one for one in addresses if not one.startswith((base, f"{BASE}/.static/", "#"))] == []
    assert f'<a href="{base}review" aria-current="page"' in page
    assert re.findall(r"<(?:script|link|style)[ >][^>]*>", page) == [
        f'<link rel="stylesheet" href="{BASE}/.static/page.css">',
        f'<link rel="icon" type="image/svg+xml" href="{BASE}/.static/icon.svg">',
        f'<script type="module" src="{BASE}/.static/page.js">',
    ]
    assert '<main id="main" tabindex="-1"><h1 dir="auto">' in page
    switch = page.partition('<select name="space"')[2].partition("</select>")[0]
    assert re.findall(r"<option [^>]*>([^<]*)", switch) == ["default", "on the quay"]


async def test_as_json_a_page_is_its_trees(browser: Browser) -> None:
    answer = await browser.open("/review", Accept="application/json")
    page = answer.json()
    assert (answer.headers["content-type"], [*page], page["here"]) == (
        "application/json",
        ["title", "here", "body"],
        "review",
    )
    tag, attributes, children = page["body"][0]
    assert (type(tag), type(attributes), type(children)) == (str, dict, list)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/a999", 404),
        ("/nothing", 404),
        ("/nothing/at/all", 404),
        ("/scene/nothing", 404),
        ("/download/r-0123456789ab", 404),
        ("/do/remember", 405),
        ("//evil.example", 404),
    ],
)
async def test_our_errors_are_pages_with_their_status(browser: Browser, path: str, status: int) -> None:
    answer = await browser.open(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    if status == 404:
        said = (await browser.open(path, Accept="application/json")).json()["error"]
        assert said[:20] in answer.text


async def test_a_name_that_no_space_can_have_is_a_bad_request(browser: Browser) -> None:
    assert (await browser.open("/", "a%3Ab")).status_code == 400


async def test_a_bug_is_logged_and_its_page_says_no_more(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_view: View) -> Page:
        raise RuntimeError("the words of the user")

    monkeypatch.setitem(pages.ADDRESSES, "/broken", "broken:broken")
    monkeypatch.setattr(pages, "_page_function", made_by(broken))
    async with browsing(home) as browser:
        answer = await browser.open("/broken")
    assert answer.status_code == 500
    assert "the words of the user" not in answer.text
    assert [record.levelno for record in caplog.records if record.name == "mcp_memory.ui.app"] == [logging.ERROR]


async def test_what_the_address_and_the_title_say_is_text(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hostile(view: View) -> Page:
        return Page(title="</title><script>alert(1)</script>", body=(el("p", view.query["q"]),))

    monkeypatch.setattr(pages, "_page_function", made_by(hostile))
    async with browsing(home) as browser:
        page = (await browser.open('/search?q="><img src=x onerror=alert(1)>')).text
    assert "<script>alert" not in page
    assert "<img" not in page
    assert 'value="&quot;&gt;&lt;img src=x onerror=alert(1)&gt;"' in page


async def test_a_name_with_a_slash_stays_one_part_of_the_path(home: Path) -> None:
    seen = list[str]()

    async def entity(view: View) -> Page:
        seen.append(view.parts["name"])
        return Page(title="", body=())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "_page_function", made_by(entity))
        async with browsing(home) as browser:
            assert (await browser.open("/entity/either%2For%20%3F")).status_code == 200
    assert seen == ["either/or ?"]


@pytest.mark.slow
async def test_a_tool_result_is_saved_as_a_file_and_never_shown(home: Path) -> None:
    raw = "<script>alert(1)</script>\r\n" * 100
    async with browsing(home) as browser:
        kept = await browser.memory.offload_tool_result("shell", raw, task="Look", step="Read", status="done")
        answer = await browser.open(f"/download/{kept.ref}")
        assert answer.content == raw.encode()
        assert answer.headers["content-disposition"] == f'attachment; filename="{kept.ref}.txt"'
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-security-policy"].startswith("sandbox")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
async def test_other_methods_are_refused(browser: Browser, method: str) -> None:
    assert (await browser.request(method, f"{BASE}/default/review", headers=OWN)).status_code == 405


async def test_a_form_that_is_none_or_too_large_is_refused(browser: Browser) -> None:
    address, kind = f"{BASE}/default/do/remember", "application/x-www-form-urlencoded"
    json_body = await browser.post(address, json={"text": "x"}, headers=OWN)
    large = await browser.post(address, content=b"x" * (MOST_FORM + 1), headers={**OWN, "Content-Type": kind})
    many = await browser.post(address, content=b"a=1&" * 2000, headers={**OWN, "Content-Type": kind})
    assert [answer.status_code for answer in (json_body, large, many)] == [415, 413, 400]


# --- changes ----------------------------------------------------------------------------------------


class Stream:
    """A request for events, made as the server makes it, so that each piece is seen when it is sent."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._gone = anyio.Event()
        self._send, self.pieces = anyio.create_memory_object_stream[Message](100)

    async def run(self) -> None:
        path = f"{BASE}/default/events"
        cookie = f"{COOKIE}={self._browser.cookies[COOKIE]}"
        scope: dict[str, Any] = {
            **{"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""},
            **{"headers": [(b"host", HOST.encode()), (b"cookie", cookie.encode())], "client": ("127.0.0.1", 1)},
        }
        with self._send:
            await self._browser.interface(scope, self._receive, self._send.send)

    async def _receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def topics(self) -> list[str]:
        while True:
            body = (await self.pieces.receive()).get("body", b"")
            if body.startswith(b"data: "):
                return json.loads(body.removeprefix(b"data: "))["topics"]

    async def begun(self) -> None:
        while (await self.pieces.receive()).get("body") != b"retry: 2000\n\n":
            pass

    async def rest(self) -> list[Message]:
        with self.pieces:
            return [piece async for piece in self.pieces]

    def leave(self) -> None:
        self._gone.set()


async def test_an_open_page_hears_what_changed_and_ends_when_the_server_stops(home: Path) -> None:
    async with browsing(home) as browser, anyio.create_task_group() as tasks:
        stream = Stream(browser)
        tasks.start_soon(stream.run)
        with anyio.fail_after(WAIT):
            await stream.begun()
            await browser.memory.remember("Tamsin lives in Bergen.", typed=True)
            assert "atom:a1" in await stream.topics()
            browser.interface.stop()
            assert (await stream.rest())[-1].get("more_body") is False


async def test_a_stream_ends_with_its_session_and_with_its_reader(home: Path) -> None:
    async with browsing(home) as browser, anyio.create_task_group() as tasks:
        streams = [Stream(browser), Stream(browser)]
        for stream in streams:
            tasks.start_soon(stream.run)
        with anyio.fail_after(WAIT):
            for stream in streams:
                await stream.begun()
            streams[0].leave()
            await streams[0].rest()
            await browser.do("leave")
            await streams[1].rest()


async def test_a_session_has_at_most_32_streams(home: Path) -> None:
    async with browsing(home) as browser, anyio.create_task_group() as tasks:
        streams = [Stream(browser) for _ in range(32)]
        with anyio.fail_after(WAIT):
            for stream in streams:
                tasks.start_soon(stream.run)
            for stream in streams:
                await stream.begun()
            assert (await browser.open("/events")).status_code == 429
            browser.interface.stop()
            for stream in streams:
                await stream.rest()


async def test_an_open_page_holds_up_no_writer(home: Path) -> None:
    async with browsing(home) as browser, anyio.create_task_group() as tasks:
        stream = Stream(browser)
        tasks.start_soon(stream.run)
        with anyio.fail_after(WAIT), stream.pieces:
            await stream.begun()
            for n in range(20):
                await browser.memory.record_turns([NewTurn(role="user", content=f"Line {n}.")], session="s")
            assert await stream.topics()
            browser.interface.stop()
            await stream.rest()
