"""The pages over HTTP, for a browser on this machine (`mcp-memory ui`) and for readers of a team's server.

    /BASE/               the page that takes a key or a token       /BASE/.enter        the key, posted
    /BASE/.static/…      style sheet and scripts                    /BASE/SPACE/…       the pages of a space (`pages`)
    /BASE/SPACE/do/…     actions, posted by forms (`actions`)       /BASE/SPACE/events  changes (`responses.Streams`)
    /BASE/SPACE/download/r-…   a tool result as a file              /BASE/SPACE/go      redirects to another space
    /BASE/SPACE/download/export   the last export (`exports`)

A request is refused if its host is not ours, if it changes something and does not come from one of our pages, or if it
has no session (`sessions`). A page is HTML, or its trees with `Accept: application/json`. Our errors are pages with
their text; any other exception is a bug: it is logged, and its page shows no details.

The page that takes a key keeps the address that was asked for, and the reader goes on to it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount

from mcp_memory.core.audit import ids_in, local_user
from mcp_memory.core.errors import (
    EmbeddingFailed,
    InvalidInput,
    McpMemoryError,
    ModelFailed,
    NotFound,
    Refused,
    StoreUnavailable,
)
from mcp_memory.core.requests import Request as MeasuredRequest
from mcp_memory.core.requests import measured
from mcp_memory.core.secrets.masking import mask
from mcp_memory.ui import actions, confirmations
from mcp_memory.ui.components import Page, View, address, link, note
from mcp_memory.ui.elements import el, tree
from mcp_memory.ui.exports import Exports
from mcp_memory.ui.frame import ENTRY_TITLE, document, entry_page, frame_page, plain_page
from mcp_memory.ui.pages import ADDRESSES, page_at
from mcp_memory.ui.pages.map import map_data
from mcp_memory.ui.responses import (
    Rejected,
    Streams,
    add_security_headers,
    attachment,
    check_origin,
    download,
    is_host,
    read_form,
    static_file,
)
from mcp_memory.ui.sessions import IDLE_SECONDS, Authenticator, Reader, Session, Sessions, TooManyKeys
from mcp_memory.ui.times import ZONE_COOKIE, in_zone

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from mcp_memory.service.memory import Memory
logger = logging.getLogger(__name__)
COOKIE = "mcp-memory-session"
REFRESH_HEADER = "mcp-memory-refresh"
"""Marks requests that a page makes automatically; they do not keep a session alive."""
_STATUS: tuple[tuple[type[McpMemoryError], int], ...] = (
    (NotFound, 404),
    (InvalidInput, 400),
    (actions.Forbidden, 403),
    (Refused, 409),
    (StoreUnavailable, 503),
    (ModelFailed, 502),
    (EmbeddingFailed, 502),
)
_FAILED = "That did not work"
_BUG = "Internal error. Its traceback is in the log of the process."
_NO_PAGE = "There is no page here."
_NOT_ALLOWED = "That cannot be done at this address."
_ENDED = "You are not signed in here, or no longer."
_WRONG_KEY = "That key is wrong, was used before, or is older than a minute. Run mcp-memory ui again for a new one."
_WRONG_TOKEN = "That token is wrong, has ended, or opens no space."
_NOT_PAGES = frozenset(("do", "download", "events", "go"))
_ONLY_HERE = re.compile(r"/(?:[atx]?\d|r-|forget|do/)")
"""Addresses that mean something else, or nothing, in another space."""
_OF_A_SPACE = frozenset(("cursor", "start", "from", "char", "check", "for", confirmations.PARAMETER))
"""Parameters of addresses, likewise."""
_SEPARATORS = re.compile(r"[./?=&]")


def ui_app(interface: Interface) -> Starlette:
    """Return an application that serves only the interface."""
    return Starlette(routes=[Mount("/", app=interface)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    """A request inside a session: the memory of its space, and the path below the space."""

    request: Request
    session: Session
    reader: Reader
    form_token: str
    memory: Memory
    path: str

    @property
    def address(self) -> str:
        query = self.request.url.query
        return f"{self.path}?{query}" if query else self.path

    @property
    def wants_json(self) -> bool:
        return "application/json" in self.request.headers.get("accept", "")


class Interface:
    """ASGI application of the pages under `base`."""

    def __init__(
        self,
        memory: Callable[[], Awaitable[Memory]],
        authenticator: Authenticator,
        *,
        base: str,
        host: str | None,
        has_tokens: bool = False,
    ) -> None:
        """`host` is the only accepted Host, None if the caller checks it. If `has_tokens`, readers enter tokens."""
        self._memory, self._authenticator, self._host = memory, authenticator, host
        self._base = base.rstrip("/")
        self._has_tokens = has_tokens
        self._known: Sessions | None = None
        self._streams = Streams()
        self._exports = Exports(self._streams.announce)
        self._is_loaded = False

    def stop(self) -> None:
        """End event streams and exports, so that the server can stop."""
        self._exports.stop()
        self._streams.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except Rejected as refused:
            response = self._plain(refused.status, _FAILED, refused.text)
        except McpMemoryError as error:
            response = self._plain(_status_of(error), _FAILED, await _mask_error(error))
        except ClientDisconnect:
            return
        except Exception:
            logger.exception("a request of the interface failed")
            response = self._plain(500, _FAILED, _BUG)
        await add_security_headers(response)(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if self._host is not None and not is_host(request, self._host):
            return PlainTextResponse(
                "This address is not that of the interface. Open the address that the command printed.", 421
            )
        if request.method not in ("GET", "HEAD", "POST"):
            raise Rejected(405, _NOT_ALLOWED)
        if request.method == "POST":
            check_origin(request, self._host)
        raw = bytes(request.scope.get("raw_path") or quote(str(request.scope["path"])).encode())
        path = raw.decode("latin-1").partition("?")[0]
        if path == self._base:
            return RedirectResponse(f"{self._base}/", 307)
        if not path.startswith(f"{self._base}/"):
            return PlainTextResponse(_NO_PAGE, 404)
        first, slash, rest = path.removeprefix(f"{self._base}/").partition("/")
        match first, request.method:
            case "", "GET" | "HEAD":
                return await self._entry(request)
            case ".enter", "POST":
                return await self._enter(request)
            case ".static", "GET" | "HEAD":
                return await static_file(request, rest) or PlainTextResponse(_NO_PAGE, 404)
            case _ if first.startswith(".") or not first:
                raise Rejected(404, _NO_PAGE)
            case _ if not slash:
                return RedirectResponse(f"{self._base}/{first}/", 307)
            case _:
                return await self._inside(request, unquote(first), f"/{rest}")

    # --- without a session --------------------------------------------------------------------------

    def _document(self, body: Sequence[object], *, title: str, status: int = 200, script: str = "enter.js") -> Response:
        static = f"{self._base}/.static"
        return HTMLResponse(document(title, body, base=self._base, static=static, script=script), status)  # pyright: ignore

    def _plain(self, status: int, title: str, *texts: str) -> Response:
        return self._document(plain_page(title, *(el("p", text) for text in texts)), title=title, status=status)

    async def _entry(self, request: Request) -> Response:
        opened = await self._session(request)
        return self._key_page() if opened is None else RedirectResponse(self._home(opened[1].space), 303)

    def _key_page(
        self, message: str | None = None, *, status: int = 200, to: str | None = None, **headers: str
    ) -> Response:
        """Return the page that takes a key. `to` is the address below the base to which its reader wants to go."""
        body = entry_page(address("/.enter", to=to), message, has_tokens=self._has_tokens)
        response = self._document(body, title=ENTRY_TITLE, status=status)
        response.headers.update(headers)
        return response

    async def _enter(self, request: Request) -> Response:
        form, to = await read_form(request), actions.own_path(request.query_params.get("to", ""))
        client = request.client.host if request.client else ""
        try:
            reader = await self._authenticator.authenticate(form.get("key", "").strip(), client)
        except TooManyKeys as many:
            wait = {"Retry-After": str(many.seconds)}
            return self._key_page(f"Too many wrong keys. Try again in {many.seconds} s.", status=429, to=to, **wait)
        except McpMemoryError as error:
            return self._key_page(await _mask_error(error), status=_status_of(error), to=to)
        if reader is None:
            return self._key_page(_WRONG_TOKEN if self._has_tokens else _WRONG_KEY, status=403, to=to)
        is_seen = to is not None and reader.may_see(unquote(to.split("/")[1]))
        response = RedirectResponse(f"{self._base}{to}" if is_seen else self._home(reader.space), 303)
        sessions, is_secure = await self._sessions(), request.headers.get("origin", "").startswith("https:")
        self._set_cookie(response, sessions.start(reader, now=await self._now(), secure=is_secure), sessions)
        return response

    def _set_cookie(self, response: Response, session: Session, sessions: Sessions) -> None:
        response.set_cookie(
            COOKIE,
            sessions.cookie(session),
            path=f"{self._base}/",
            max_age=self._authenticator.remembered_seconds,
            httponly=True,
            samesite="strict",
            secure=session.secure,
        )

    def _home(self, space: str) -> str:
        return f"{self._base}/{quote(space, safe='')}/"

    async def _sessions(self) -> Sessions:
        if self._known is None:
            idle = self._authenticator.remembered_seconds or IDLE_SECONDS
            self._known = Sessions(await self._authenticator.secret(), idle_seconds=idle)
        return self._known

    async def _now(self) -> float:
        """Return the time by the clock of the memory, which its servers share."""
        return (await self._memory()).now().timestamp()

    async def _session(self, request: Request) -> tuple[Session, Reader] | None:
        """Return the session of a request and its reader; None if it has ended.

        Raises McpMemoryError if the memory cannot be opened.
        """
        cookie = request.cookies.get(COOKIE)
        session = (await self._sessions()).of(cookie, now=await self._now()) if cookie else None
        reader = session and await self._reader(session)
        return (session, reader) if session and reader else None

    async def _reader(self, session: Session) -> Reader | None:
        """Return the reader of a session; None, and end the session, if its credential is no longer valid."""
        reader = await self._authenticator.resume(session.proof)
        if reader is None:
            (await self._sessions()).end(session)
        return reader

    async def _goes_on(self, session: Session) -> bool:
        """Return whether a session is still open, and its credential valid."""
        try:
            is_open = (await self._sessions()).is_open(session, now=await self._now())
            return is_open and await self._reader(session) is not None
        except McpMemoryError:
            return True  # the next request fails too

    # --- in a session ------------------------------------------------------------------------------

    async def _inside(self, request: Request, space: str, path: str) -> Response:
        opened = await self._session(request)
        if opened is None:
            if "application/json" in request.headers.get("accept", ""):
                return JSONResponse({"error": _ENDED}, 401)
            is_page = request.method != "POST" and path.split("/")[1] not in _NOT_PAGES
            query = f"?{request.url.query}" if is_page and request.url.query else ""
            return self._key_page(_ENDED, status=401, to=f"/{quote(space, safe='')}{path if is_page else '/'}{query}")
        session, reader = opened
        if not reader.may_see(space):
            raise Rejected(404, _NO_PAGE)
        memory = (await self._memory()).in_space(space)
        if reader.who:
            memory = memory.of_client(reader.who)
        if not self._is_loaded:
            await anyio.to_thread.run_sync(_import_pages)
            self._is_loaded = True
        sessions = await self._sessions()
        visit = _Visit(
            request=request,
            session=session,
            reader=reader,
            form_token=sessions.form_token(session),
            memory=memory,
            path=path,
        )
        response = await self._visited(visit)
        used = None if REFRESH_HEADER in request.headers else sessions.used(session, now=await self._now())
        if used is not None and COOKIE not in response.headers.get("set-cookie", ""):
            self._set_cookie(response, used, sessions)
        return response

    async def _visited(self, visit: _Visit) -> Response:
        who, ids = visit.reader.name or local_user(), ids_in({"ids": visit.path.split("/")})
        async with measured(MeasuredRequest("page", who=who, space=visit.memory.space, ids=ids)) as measure:
            try:
                with in_zone(visit.request.cookies.get(ZONE_COOKIE)):
                    if visit.request.method == "POST":
                        return await self._do(visit, measure)
                    return await self._show(visit)
            except McpMemoryError as error:
                measure.fail(error)
                return await self._error(visit, _status_of(error), await _mask_error(error))
            except (Rejected, ClientDisconnect):
                measure.outcome = "rejected"
                raise
            except Exception as error:
                measure.fail(error)
                logger.exception("a page could not be made")
                return await self._error(visit, 500, _BUG)

    async def _show(self, visit: _Visit) -> Response:
        first, _, rest = visit.path[1:].partition("/")
        match first, rest:
            case "events", "":
                return self._events(visit)
            case "go", "":
                space = visit.request.query_params.get("space", "")
                if not space or not visit.reader.may_see(space):
                    raise Rejected(404, _NO_PAGE)
                return RedirectResponse(f"{self._home(space).rstrip('/')}{await self._same_page(visit, space)}", 303)
            case "map.json", "":
                return JSONResponse(await map_data(visit.memory, visit.request.query_params))
            case "download", "export":
                exports = self._exports_for(visit.reader, visit.memory)
                file = exports and (await exports.state(visit.memory)).file
                if not file:
                    raise NotFound("There is no export to download. Make one under Export and settings.")
                return download(file.path, f"mcp-memory-{visit.memory.space}-{file.path.name}")
            case "download", id:
                ref, data = await visit.memory.ref(unquote(id))
                return attachment(data, f"{ref.id}.txt")
            case "", rest if rest:  # `//host/…`, which other parsers read as another host
                raise NotFound(_NO_PAGE)
            case "do", _:
                raise Rejected(405, _NOT_ALLOWED)
            case _:
                view = self._view(visit)
                page = await page_at(visit.address, view)
                done = await confirmations.confirmation(visit.request.query_params.get(confirmations.PARAMETER), view)
                return await self._page(visit, replace(page, body=(*done, *page.body)))

    async def _same_page(self, visit: _Visit, space: str) -> str:
        """Return the address in another space of the page that the reader came from; `/` if there is none.

        Rows are numbered in each space, so an id means another row there.
        """
        here = self._home(visit.memory.space).rstrip("/")
        came = urlsplit(visit.request.headers.get("referer", ""))
        path = came.path.removeprefix(here)
        if path == came.path or not actions.own_path(path) or _ONLY_HERE.match(path):
            return "/"
        kept = {name: value for name, value in parse_qsl(came.query) if name not in _OF_A_SPACE}
        same = address(path, **kept)
        try:
            await page_at(same, replace(self._view(visit), memory=visit.memory.in_space(space)))
        except McpMemoryError:
            return "/"
        return same

    def _view(self, visit: _Visit) -> View:
        reader = visit.reader
        form_token = visit.form_token if reader.allows("write") else ""
        return View(
            memory=visit.memory,
            right=reader.right,
            form_token=form_token,
            is_owner=reader.is_owner,
            sign_ins=self._authenticator.sign_ins(),
            exports=self._exports_for(reader, visit.memory),
        )

    def _exports_for(self, reader: Reader, memory: Memory) -> Exports | None:
        """Return the exports for the owner, if the next request reaches the files of this process or its home."""
        return self._exports if reader.is_owner and (self._host is not None or memory.has_files) else None

    async def _page(self, visit: _Visit, page: Page, status: int = 200) -> Response:
        if visit.wants_json:
            shown = {"title": page.title, "here": page.here, "body": [tree(node) for node in page.body]}
            return JSONResponse(shown, status)
        reader, space = visit.reader, visit.memory.space
        spaces = reader.spaces or ()
        if reader.spaces is None:
            with suppress(McpMemoryError):
                spaces = await visit.memory.spaces()
        body = frame_page(
            page,
            space=space,
            spaces=sorted({space, reader.space, *spaces}),
            form_token=visit.form_token,
            query=visit.request.query_params.get("q", "") if visit.path == "/search" else "",
        )
        base, static = self._home(space).rstrip("/"), f"{self._base}/.static"
        return HTMLResponse(document(page.title, body, base=base, static=static, script="page.js"), status)

    async def _error(self, visit: _Visit, status: int, text: str, *, back: str = "") -> Response:
        if visit.wants_json:
            return JSONResponse({"error": text}, status)
        title = "Not found" if status == 404 else _FAILED
        way = el("p", link(back, "Back to where you were") if back else link("/search", "Search the memory"))
        return await self._page(visit, Page(title=title, body=(note(text, kind="bad"), way)), status)

    def _events(self, visit: _Visit) -> Response:
        session = visit.session
        if not self._streams.may_open(session.id):
            raise Rejected(429, "Too many pages of this session wait for changes already.")
        events = self._streams.of(session.id, visit.memory, partial(self._goes_on, session))
        return StreamingResponse(events, media_type="text/event-stream")

    async def _do(self, visit: _Visit, measure: MeasuredRequest) -> Response:
        first, _, name = visit.path[1:].partition("/")
        if first != "do":
            raise Rejected(405, _NOT_ALLOWED)
        form = await read_form(visit.request)
        measure.verb = f"action {name}" if name in actions.names() else "action"
        measure.ids = ids_in({field: value.split() for field, value in form.items()})
        sessions = await self._sessions()
        if not sessions.is_form_token(visit.session, form.get("form_token", "")):
            measure.outcome = "rejected"
            return await self._error(visit, 403, "This form has expired. Go back, load the page again and repeat.")
        if name in ("leave", "leave_everywhere"):
            sessions.end(visit.session)
            await self._authenticator.leave(visit.session.proof, everywhere=name == "leave_everywhere")
            response = RedirectResponse(f"{self._base}/", 303)
            response.delete_cookie(COOKIE, path=f"{self._base}/", httponly=True, samesite="strict")
            return response
        exports = self._exports_for(visit.reader, visit.memory)
        call = actions.Call(memory=visit.memory, reader=visit.reader, form=form, exports=exports)
        try:
            done = await actions.run(unquote(name), call)
        except McpMemoryError as error:
            measure.fail(error)
            return await self._error(visit, _status_of(error), await _mask_error(error), back=call.back(""))
        if isinstance(done, Page):
            return await self._page(visit, done)
        measure.ids = tuple(dict.fromkeys((*measure.ids, *ids_in({"ids": _SEPARATORS.split(done)}))))
        return RedirectResponse(f"{self._home(visit.memory.space).rstrip('/')}{done}", 303)


def _status_of(error: McpMemoryError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


async def _mask_error(error: McpMemoryError) -> str:
    return await anyio.to_thread.run_sync(mask, error.public or str(error))


def _import_pages() -> None:
    for module in {name.partition(":")[0] for name in ADDRESSES.values()}:
        with suppress(ModuleNotFoundError):
            import_module(f"mcp_memory.ui.pages.{module}")


async def warm_up(memory: Memory) -> None:
    """Load the modules of the pages, and the modules that explain a search."""
    await anyio.to_thread.run_sync(_import_pages)
    with suppress(McpMemoryError):
        await memory.explain("warm up", limit=1)
