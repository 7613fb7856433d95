"""Verbs for people and programs around a memory: tokens, imports and exports, backups, review.

A token of an HTTP client reads `mcm_<id>_<secret>`. The id finds its row. Only the hash of the secret is kept. It is
compared in constant time, with an arbitrary hash if there is no such row.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
import time as time_module
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import anyio.to_thread

from mcp_memory import __version__
from mcp_memory.core.errors import (
    DamagedRow, EmbeddingFailed, InvalidInput, NotFound, Refused, StoreUnavailable,
)
from mcp_memory.core.keyed import keyed_id
from mcp_memory.core.logs import SafeText
from mcp_memory.core.private import without_private
from mcp_memory.core.process_registry import all_processes
from mcp_memory.core.progress import Tell, untold
from mcp_memory.core.rights import RIGHTS, Right
from mcp_memory.core.secrets.masking import mask, mask_id, mask_typed, require_no_key
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import (
    FORGOTTEN, ActivityEntry, Atom, Bundle, CanvasRow, CanvasView, CitedResult, DaySavings, Detail, Distilled, Expansion, Fact,
    Forgotten, Kind, MemoryResults, Mention, NewTurn, Offloaded, Persona, PersonaVersion, Record, Recorded, Ref, Remembered,
    Reviewed, Role, Scene, SessionSavings, ShownMemories, ShownTurns, Source, StatementKind, StatementPage, StepStatus, Turn,
    TurnResults, Verified, Why, WorkQuestion,
)
from mcp_memory.models.llm import reply_schema
from mcp_memory.service.verbs.base import (
    FRAME_TOKENS, MAX_LIMIT, QueryVectors, Verbs, check_range, in_thread, join_notes, store_verb,
)
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import (
    CanvasChange, Conflict, Filters, Held, NewAtom, RecallEntry, RecallHow, Saved, Saving, SavingKind, SceneChanges, Token,
    Tombstone, Verdict,
)

if TYPE_CHECKING:
    from mcp_memory.core.process_registry import HomeProcess
    from mcp_memory.longterm.recall.blocks import Recalled
    from mcp_memory.longterm.search.explain import Explained
    from mcp_memory.service.compression.compress import Compressed
    from mcp_memory.service.compression.plan import Level
    from mcp_memory.service.due_stages import WaitingJobs
    from mcp_memory.service.portable.bringing import Brought
    from mcp_memory.service.portable.reading import Parcel
    from mcp_memory.service.portable.writing import Exported
    from mcp_memory.service.scheduler import LeasedJob
    from mcp_memory.service.upkeep.backup import Backup
    from mcp_memory.service.upkeep.rebuild import Agreement
    from mcp_memory.store import export_model
    from mcp_memory.store.forgetting import How, Keeping, Policy, Purged, Reach
    from mcp_memory.store.purge_search import Proof
    from mcp_memory.store.values import CanvasVersion


PREFIX = "mcm"
_NO_TOKEN_HASH = sha256(b"").digest()
_PAGE = 500


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



class AdministrationVerbs(Verbs):
    """Tokens of HTTP clients, logs of clients, imports and exports, backups, and review."""

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
        for space in {*opened} - {*self._store.spaces()}:
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
        self._store.add_token(token)
        return token, f"{PREFIX}_{id}_{secret}"

    @in_thread
    def tokens(self) -> list[Token]:
        """Return all tokens that ever were, the oldest first."""
        return self._store.tokens()

    @in_thread
    def revoke_token(self, which: str) -> Token:
        """Revoke the token of this id or name, in every process at once. Raises NotFound."""
        store = self._store
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
        token = self._store.token(id) if prefix == PREFIX and text.isascii() else None
        is_right = hmac.compare_digest(_hash(secret), _NOBODY if token is None else token.hash)
        now = self._parts.now()
        if token is None or not is_right or not token.is_good(now):
            return None
        try:
            self._store.note_token_used(token.id, now=now)
        except StoreUnavailable:
            pass  # a home that can only be read is read with its tokens all the same
        return token

    @in_thread
    def is_good(self, id: str) -> bool:
        """Return whether a token that was shown before still opens anything."""
        token = self._store.token(id)
        return token is not None and token.is_good(self._parts.now())

    @in_thread
    def secret(self, purpose: str) -> bytes:
        """Return the secret key of the home for one purpose; see `core.keyed`. It must not be stored."""
        return self._store.secret(purpose)

    # --- imports, exports and backups ---------------------------------------------------------------

    followed_logs = store_verb(Store.followed_logs)

    note_followed = store_verb(Store.note_followed_log)

    imported = store_verb(Store.imported_files)

    note_import = store_verb(Store.note_imported_file)

    known_client_ids = store_verb(Store.known_client_ids)

    @in_thread
    def export(self, target: Path, *, spaces: Sequence[str] | None = (), tell: Tell = untold) -> Exported:
        """Write this space (or these; None means all) to a file that is not there yet. Nothing forgotten is in it."""
        from mcp_memory.service.portable.writing import export

        store = self._store
        chosen = None if spaces is None else spaces or [self.space]
        return export(store, target, chosen, tell=tell)

    @in_thread
    def take_in(self, parcel: Parcel, space: str, *, tell: Tell = untold) -> Brought:
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
        self._refresh()
        return done

    @in_thread
    def tell(self, statements: Sequence[StatementToImport]) -> ImportedStatementsReport:
        """Store statements of another memory, each once.

        One with a known id and a new text replaces its earlier text. Forgotten ones are not stored again.
        """
        from mcp_memory.longterm.verification.trust import checked_claim

        parts, store, space = self._parts, self._store, self.space
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
            atom, _ = checked_claim(store, space, told_here, embed=QueryVectors(parts.indexing).embed)
            written = store.add_atom(space, atom, now=parts.now())
            if id:
                store.note_origins(space, {id: written.atom.id})
            repeated += written.duplicate
            told += not written.duplicate
            held += bool(atom.held) and not written.duplicate
        if told:
            self._refresh()
        return ImportedStatementsReport(told=told, held=held, repeated=repeated, kept_out=kept_out)

    @property
    def has_files(self) -> bool:
        """Whether the memory is in files of this machine."""
        return self._parts.embedded is not None

    @in_thread
    def backups(self) -> list[Backup]:
        """Return the backups in the home, the newest first. Their members are not read."""
        from mcp_memory.service.upkeep.backup import folder_of, listed

        return listed(folder_of(self.settings.home)) if self.has_files else []

    @in_thread
    def back_up(self) -> Backup:
        """Back up all spaces of the home into one file there, and verify it. Others may go on writing.

        Raises Refused for a memory in PostgreSQL, StoreUnavailable if there is no room, Damaged if the file differs
        from the data that was written.
        """
        from mcp_memory.service.upkeep.backup import back_up

        embedded = self._parts.embedded
        if embedded is None:
            raise Refused("This memory is in PostgreSQL, which has backups of its own. No backup was made.")
        return back_up(embedded, self.settings.home, now=self._parts.now().astimezone())

    @in_thread
    def agreement(self) -> Agreement | None:
        """Compare all that the files of the home say with its database, row by row; None where there are no files.

        Every file is read, so it takes longer the larger the memory is.
        """
        from mcp_memory.service.upkeep.rebuild import agreement

        return agreement(self.settings.home) if self.has_files else None

    # --- review -------------------------------------------------------------------------------------

    @in_thread
    def waiting(self, *, limit: int = 100) -> list[Reviewed]:
        """Return the quarantined rows, newest first, each with its text."""
        return self._worded(self._store.quarantined(self.space, limit=limit))

    @in_thread
    def decided(self, *, limit: int = 50) -> list[Reviewed]:
        """Return the rows that were released or kept in quarantine, the last decision first, each with its text."""
        return self._worded(self._store.quarantined(self.space, decided=True, limit=limit))

    @in_thread
    def why_held(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return those of the rows that wait for review, and why, so that whoever shows them marks them."""
        found = self._store.quarantined(self.space, ids)
        return {one.id: tuple(one.reasons) for one in found if one.is_quarantined}

    @in_thread
    def review(self, ids: Sequence[str], verdict: Verdict) -> list[Reviewed]:
        """Release quarantined rows for recall (`released`), or keep them out for good (`kept`). Raises NotFound for
        others.
        """
        if not ids:
            raise InvalidInput("Nothing is named: give ids such as a5 or t8. `mcp-memory review` lists what waits.")
        done = self._store.review(self.space, ids, verdict, now=self._parts.now())
        self._refresh()
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

        store = self._store
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
            self._write_persona()
        return self._worded(store.quarantined(self.space, new)) if new else []

    def _hold(self, reasons: dict[str, tuple[str, ...]]) -> list[str]:
        store = self._store
        known = {one.id for one in store.quarantined(self.space, reasons)} if reasons else set[str]()
        fresh = {id: why for id, why in reasons.items() if id not in known}
        if fresh:
            store.quarantine(self.space, fresh, now=self._parts.now())
        return list(fresh)

    def _turns(self) -> Iterator[list[Turn]]:
        store = self._store
        for session in store.sessions(self.space, limit=1_000_000):
            start = 0
            while page := store.session_turns(self.space, session.session, start=start, limit=_PAGE):
                yield [turn for turn in page if turn.role != "note"]
                start = page[-1].position + 1

    def _worded(self, held: Sequence[Held]) -> list[Reviewed]:
        store, ids = self._store, [one.id for one in held]
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
