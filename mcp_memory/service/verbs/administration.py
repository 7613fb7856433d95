"""Verbs for people and programs around a memory: tokens, client logs, export and import, review.

A token of an HTTP client reads `mcm_<id>_<secret>`. The id finds its row. Only the hash of the secret is kept, and is
compared in constant time, with some hash even where there is no such row.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput, NotFound, StoreUnavailable
from mcp_memory.core.keyed import keyed_id
from mcp_memory.core.progress import ReportProgress, ignore_progress
from mcp_memory.core.rights import RIGHTS, Right
from mcp_memory.core.secrets.masking import require_no_key
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import Atom, Reviewed, Turn
from mcp_memory.service.verbs.base import in_thread, of_store
from mcp_memory.service.verbs.retention import RetentionVerbs
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Filters, Held, NewAtom, Token, Verdict

if TYPE_CHECKING:
    from mcp_memory.service.portable.bringing import Brought
    from mcp_memory.service.portable.reading import Parcel
    from mcp_memory.service.portable.writing import Exported
    from mcp_memory.store import export_model
    from mcp_memory.store.forgetting import How

PREFIX = "mcm"
_NOBODY = sha256(b"").digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementToImport:
    """A statement of another memory; `id` is what that memory calls it, whatever it says."""

    atom: NewAtom
    id: str | None = None
    words: str = ""
    """Its text without the subject that was put before it."""

    @property
    def wordings(self) -> tuple[str, ...]:
        """Return how it may have been said before it was forgotten."""
        return (self.atom.text, self.words) if self.words else (self.atom.text,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedStatementsReport:
    """Counts of imported statements: new ones, of which `held` are quarantined; repeated ones; and those forgotten
    here.
    """

    told: int = 0
    held: int = 0
    repeated: int = 0
    kept_out: int = 0


_PAGE = 500


class AdministrationVerbs(RetentionVerbs):
    """Tokens of HTTP clients, logs of clients, export and import, and review."""

    @in_thread
    def create_token(
        self, name: str, *, spaces: Sequence[str] = (), right: Right = "write", expires: timedelta | None = None
    ) -> tuple[Token, str]:
        """Make a token and return it with the text that its client shows, which is nowhere kept.

        It opens `spaces` (left out, this one). Raises InvalidInput for a name that is taken or a space that cannot be.
        """
        named = one_line(name, 80)
        if not named:
            raise InvalidInput("A token needs a name, such as that of the machine or program that will show it.")
        if len(name.strip()) > len(named):
            raise InvalidInput(f"The name of a token can have 80 characters on one line, and this has {len(name):,}.")
        require_no_key(named, "token")
        if right not in RIGHTS:
            raise InvalidInput(f"right {right!r} is unknown. Allowed: {', '.join(RIGHTS)}.")
        if expires is not None and expires <= timedelta():
            raise InvalidInput(
                "A token has to last for some time. Leave its end out, and it lasts until it is revoked."
            )
        opened = tuple(dict.fromkeys(safe_name(space, what="space") for space in spaces or [self.space]))
        for space in {*opened} - {*self._parts.store.spaces()}:
            require_no_key(space, "space")
        id, secret, now = secrets.token_hex(4), secrets.token_urlsafe(32), self._parts.now()
        token = Token(
            id=id,
            name=named,
            spaces=opened,
            right=right,
            at=now.replace(microsecond=0),
            until=None if expires is None else _after(now.replace(microsecond=0), expires),
            hash=_hash(secret),
        )
        self._parts.store.add_token(token)
        return token, f"{PREFIX}_{id}_{secret}"

    @in_thread
    def tokens(self) -> list[Token]:
        """Return all tokens that ever were, the oldest first."""
        return self._parts.store.tokens()

    @in_thread
    def revoke_token(self, which: str) -> Token:
        """Revoke the token of this id or name, in every process at once. Raises NotFound."""
        store = self._parts.store
        live = [token for token in store.tokens() if token.revoked_at is None]
        found = next((token for token in live if which in (token.id, token.name)), None)
        if found is None:
            known = ", ".join(token.name for token in live)
            raise NotFound(
                f"There is no token {one_line(which, 60)!r} to revoke. " + (f"Tokens: {known}." if known else "")
            )
        store.revoke_token(found.id, now=self._parts.now())
        return found

    @in_thread
    def token_shown(self, text: str) -> Token | None:
        """Return the token that a client shows; None where it is wrong, revoked, or its time is over."""
        prefix, _, rest = text.partition("_")
        id, _, secret = rest.partition("_")
        token = self._parts.store.token(id) if prefix == PREFIX and text.isascii() else None
        is_right = hmac.compare_digest(_hash(secret), _NOBODY if token is None else token.hash)
        now = self._parts.now()
        if token is None or not is_right or not token.is_good(now):
            return None
        try:
            self._parts.store.note_token_used(token.id, now=now)
        except StoreUnavailable:
            pass  # a home that can only be read is read with its tokens all the same
        return token

    @in_thread
    def is_good(self, id: str) -> bool:
        """Return whether a token that was shown before still opens anything."""
        token = self._parts.store.token(id)
        return token is not None and token.is_good(self._parts.now())

    followed_logs = of_store(Store.followed_logs)
    note_followed = of_store(Store.note_followed_log)

    @in_thread
    def secret(self, purpose: str) -> bytes:
        """Return the secret key of the home for one purpose; see `core.keyed`. It must not be stored."""
        return self._parts.store.secret(purpose)

    known_client_ids = of_store(Store.known_client_ids)
    kept_calls = of_store(Store.stored_calls)

    @in_thread
    def export(
        self, target: Path, *, spaces: Sequence[str] | None = (), tell: ReportProgress = ignore_progress
    ) -> Exported:
        """Write this space (or these; None means all) to a file that is not there yet. Nothing forgotten is in it."""
        from mcp_memory.service.portable.writing import export

        store = self._parts.store
        chosen = None if spaces is None else spaces or [self.space]
        return export(store, target, chosen, tell=tell)

    @in_thread
    def take_in(self, parcel: Parcel, space: str, *, tell: ReportProgress = ignore_progress) -> Brought:
        """Import a space of an export into this one. Known rows are not stored again, and forgotten ones never.

        Rows forgotten there since the last import are forgotten here too, which can be undone.
        """
        from mcp_memory.service.portable.bringing import bring

        parts = self._parts
        done = bring(
            parts.store,
            parcel,
            space,
            self.space,
            now=parts.now,
            doubts=_doubts,
            forget=self._forget_too,
            undo=self._undo,
            tell=tell,
        )
        self._changed()
        return done

    @in_thread
    def tell(self, statements: Sequence[StatementToImport]) -> ImportedStatementsReport:
        """Store statements of another memory, each once.

        One with a known id and a new text replaces its earlier text. Forgotten ones are not stored again.
        """
        from mcp_memory.longterm.verification.trust import checked_claim

        parts, store, space = self._parts, self._parts.store, self.space
        secret = store.secret("statement ids")
        gone = store.forgotten_statements(space, [one.wordings for one in statements])
        told = held = repeated = kept_out = 0
        for place, one in enumerate(statements):
            # An earlier version stored the id as it was given.
            id = one.id and keyed_id(secret, one.id)
            named = store.known_as(space, [name for name in (id, one.id) if name])
            known = next(iter(named.values()), None)
            before = store.atoms(space, [known]) if known else []
            if place in gone or (known and not before):
                kept_out += 1
                continue
            if before and before[0].text == one.atom.text:
                repeated += 1
                continue
            replaced = [atom.id for atom in before if atom.valid_to is None]
            told_here = replace(one.atom, supersedes=replaced)
            atom, _ = checked_claim(store, space, told_here, embed=parts.asking().vectors)
            written = store.add_atom(space, atom, now=parts.now())
            if id:
                store.note_origins(space, {id: written.atom.id})
            repeated += written.duplicate
            told += not written.duplicate
            held += bool(atom.held) and not written.duplicate
        if told:
            self._changed()
        return ImportedStatementsReport(told=told, held=held, repeated=repeated, kept_out=kept_out)

    @in_thread
    def forget_again(self, ids: Sequence[str], *, reason: str, how: How) -> str:
        """Forget rows that a later state of this memory had forgotten; return the tombstone."""
        return self._forget_too(ids, reason, how=how)

    def _forget_too(self, ids: Sequence[str], reason: str, *, how: How = "import") -> str:
        return self._forget(ids, reason=reason, how=how).id

    @in_thread
    def waiting(self, *, limit: int = 100) -> list[Reviewed]:
        """Return the quarantined rows, newest first, each with its text."""
        return self._worded(self._parts.store.quarantined(self.space, limit=limit))

    @in_thread
    def decided(self, *, limit: int = 50) -> list[Reviewed]:
        """Return the rows that were released or kept in quarantine, the last decision first, each with its text."""
        return self._worded(self._parts.store.quarantined(self.space, decided=True, limit=limit))

    @in_thread
    def why_held(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return those of the rows that wait for review, and why, so that whoever shows them marks them."""
        found = self._parts.store.quarantined(self.space, ids)
        return {one.id: tuple(one.reasons) for one in found if one.is_quarantined}

    @in_thread
    def review(self, ids: Sequence[str], verdict: Verdict) -> list[Reviewed]:
        """Release quarantined rows for recall (`released`), or keep them out for good (`kept`). Raises NotFound for
        others.
        """
        if not ids:
            raise InvalidInput("Nothing is named: give ids such as a5 or t8. `mcp-memory review` lists what waits.")
        done = self._parts.store.review(self.space, ids, verdict, now=self._parts.now())
        self._changed()
        return self._worded(done)

    @in_thread
    def scan(self) -> list[Reviewed]:
        """Judge all stored rows as if they came in now; return those newly quarantined.

        Rows stored before secrets were masked are quarantined if they have one.
        """
        from mcp_memory.core.secrets.masking import holds_secret
        from mcp_memory.core.types import NewTurn
        from mcp_memory.longterm.verification.trust import flag_turns
        from mcp_memory.suspicion.flags import flags

        def _secret(turn: Turn) -> list[str]:
            return ["secret"] if holds_secret(turn.content, prose=turn.role != "tool") else []

        store = self._parts.store
        new: list[str] = []
        for turns in self._turns():
            given = [NewTurn(role=turn.role, content=turn.content, name=turn.name) for turn in turns]
            judged = zip(turns, flag_turns(store, self.space, given, at_once=None), strict=True)
            new += self._hold({turn.id: why for turn, one in judged if (why := (*one.held, *_secret(turn)))})
        last: str | None = None
        while atoms := store.list_atoms(self.space, filters=Filters(), after=last, limit=_PAGE):
            last = atoms[-1].id
            new += self._hold({atom.id: why for atom in atoms if (why := flags(atom.text, atom.source))})
        if new:
            self._parts.scheduler.write_persona()
        return self._worded(store.quarantined(self.space, new)) if new else []

    def _hold(self, reasons: dict[str, tuple[str, ...]]) -> list[str]:
        store = self._parts.store
        known = {one.id for one in store.quarantined(self.space, reasons)} if reasons else set[str]()
        fresh = {id: why for id, why in reasons.items() if id not in known}
        if fresh:
            store.quarantine(self.space, fresh, now=self._parts.now())
        return list(fresh)

    def _turns(self) -> Iterator[list[Turn]]:
        store = self._parts.store
        for session in store.sessions(self.space, limit=1_000_000):
            start = 0
            while page := store.session_turns(self.space, session.session, start=start, limit=_PAGE):
                yield [turn for turn in page if turn.role != "note"]
                start = page[-1].position + 1

    def _worded(self, held: Sequence[Held]) -> list[Reviewed]:
        store, ids = self._parts.store, [one.id for one in held]
        rows: dict[str, Turn | Atom] = {
            **{turn.id: turn for turn in store.turns(self.space, [id for id in ids if id[0] == "t"])},
            **{atom.id: atom for atom in store.atoms(self.space, [id for id in ids if id[0] == "a"])},
        }
        return [_reviewed(one, rows[one.id]) for one in held if one.id in rows]


def _after(now: datetime, span: timedelta) -> datetime:
    try:
        return now + span
    except OverflowError:
        raise InvalidInput("No token lasts that long. Leave its end out, and it lasts until it is revoked.") from None


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _doubts(row: export_model.ExportedTurn | export_model.ExportedAtom) -> tuple[str, ...]:
    """Return why an imported row is quarantined: it reads like an injected instruction, or contains a secret.

    Imported rows are not masked: their hashes and quotes are of the original words.
    """
    from mcp_memory.core.secrets.masking import holds_secret
    from mcp_memory.longterm.verification.trust import source_of_role
    from mcp_memory.store import export_model
    from mcp_memory.suspicion.flags import flags

    if isinstance(row, export_model.ExportedTurn):
        text, prose = row.content, row.role != "tool"
        found = (*flags(text, source_of_role(row.role, row.name), is_turn=True), *flags(row.name or "", "tool"))
    else:
        text, prose = row.text, True
        found = flags(text, row.source)
    return tuple(dict.fromkeys((*found, *(["secret"] if holds_secret(text, prose=prose) else []))))


def _reviewed(held: Held, row: Turn | Atom) -> Reviewed:
    from mcp_memory.longterm.verification.trust import source_of_turn

    match row:
        case Turn():
            kind, source, session, text = "turn", source_of_turn(row), row.session, row.content
        case Atom():
            kind, source, session, text = row.kind, row.source, None, row.text
    return Reviewed(
        id=held.id,
        reasons=list(held.reasons),
        at=held.at,
        verdict=held.verdict,
        source=source,
        session=session,
        text=text,
        kind=kind,
        reviewed_at=held.reviewed_at,
    )
