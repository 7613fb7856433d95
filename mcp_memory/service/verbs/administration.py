"""Verbs for people and programs around a memory: tokens, imports and exports, backups, review.

A token of an HTTP client reads `mcm_<id>_<secret>`. The id finds the row, which has only a hash of the secret. Hashes
are compared in constant time, even if there is no such row.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput, NotFound, Refused, StoreUnavailable
from mcp_memory.core.keyed_hash import keyed_id
from mcp_memory.core.progress import ReportProgress, ignore_progress
from mcp_memory.core.rights import RIGHTS, Right
from mcp_memory.core.secrets.masking import holds_secret, mask_name, require_no_key
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import Atom, Reviewed, Turn
from mcp_memory.service.verbs.base import QueryVectors, home_verb, in_thread, reading, store_verb
from mcp_memory.service.verbs.forgetting import ForgettingVerbs
from mcp_memory.store.sql import atom_rows, digests, home_rows, importing, quarantine_rows, turn_rows
from mcp_memory.store.values import Filters, Held, NewAtom, Token, Verdict

if TYPE_CHECKING:
    from mcp_memory.service.portable.bringing import Brought
    from mcp_memory.service.portable.reading import Parcel
    from mcp_memory.service.portable.writing import Exported
    from mcp_memory.service.upkeep.backup import Backup
    from mcp_memory.store.row_types import AtomRow, TurnRow


PREFIX = "mcm"
_NO_TOKEN_HASH = sha256(b"").digest()
_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementToImport:
    """A statement of another memory. `id` is its id in that memory, which does not change with the text."""

    atom: NewAtom
    id: str | None = None
    words: str = ""
    """The text without the subject that was added to it; empty if none was."""

    @property
    def wordings(self) -> tuple[str, ...]:
        """The texts to look up among forgotten statements: with and without the added subject."""
        return (self.atom.text, self.words) if self.words else (self.atom.text,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedStatementsReport:
    """Counts of imported statements.

    `stored` are new, `quarantined` of these are quarantined, `repeated` are stored already, and `forgotten` were
    forgotten in this memory.
    """

    stored: int = 0
    quarantined: int = 0
    repeated: int = 0
    forgotten: int = 0


class AdministrationVerbs(ForgettingVerbs):
    """Tokens of HTTP clients, logs of clients, imports and exports, backups, and review."""

    @in_thread
    def create_token(
        self, name: str, *, spaces: Sequence[str] = (), right: Right = "write", expires: timedelta | None = None
    ) -> tuple[Token, str]:
        """Create a token and return it with the text that its client presents, which is not stored.

        It is for `spaces`, by default the current space. Raises InvalidInput for a name in use, and for an invalid
        name, space, right or expiry.
        """
        label = one_line(name, 80)
        if not label:
            raise InvalidInput("A token needs a name, such as that of the machine or program that will show it.")
        if len(name.strip()) > len(label):
            raise InvalidInput(f"The name of a token can have 80 characters on one line, and this has {len(name):,}.")
        require_no_key(label, "token")
        if right not in RIGHTS:
            raise InvalidInput(f"right {right!r} is unknown. Allowed: {', '.join(RIGHTS)}.")
        if expires is not None and expires <= timedelta():
            raise InvalidInput("expires has to be in the future. Without it, the token is valid until it is revoked.")
        names = tuple(dict.fromkeys(safe_name(space, what="space") for space in spaces or [self.space]))
        for space in {*names} - {*self._store.read_home(home_rows.spaces)}:
            require_no_key(space, "space")
        id, secret, now = secrets.token_hex(4), secrets.token_urlsafe(32), self._parts.now()
        token = Token(
            id=id,
            name=label,
            spaces=names,
            right=right,
            at=now.replace(microsecond=0),
            until=None if expires is None else _expiry(now.replace(microsecond=0), expires),
            hash=_hash(secret),
        )
        self._store.write_home(home_rows.add_token, token)
        return token, f"{PREFIX}_{id}_{secret}"

    tokens = home_verb(home_rows.tokens)

    @in_thread
    def revoke_token(self, which: str) -> Token:
        """Revoke the token of this id or name, in every process at once.

        Raises NotFound for an unknown or revoked token.
        """
        tokens = [token for token in self._store.read_home(home_rows.tokens) if token.revoked_at is None]
        for token in tokens:
            if which in (token.id, token.name):
                self._store.write_home(home_rows.revoke_token, token.id, now=self._parts.now())
                return token
        names = ", ".join(token.name for token in tokens)
        raise NotFound(
            f"There is no token {one_line(which, 60)!r} to revoke. " + (f"Tokens: {names}." if names else "")
        )

    @in_thread
    def token_shown(self, text: str) -> Token | None:
        """Note the use of the token whose text a client presents, and return it; None if there is no valid token."""
        prefix, _, rest = text.partition("_")
        id, _, secret = rest.partition("_")
        token = self._store.read_home(home_rows.token, id) if prefix == PREFIX and text.isascii() else None
        matches = hmac.compare_digest(_hash(secret), _NO_TOKEN_HASH if token is None else token.hash)
        now = self._parts.now()
        if token is None or not matches or not token.is_good(now):
            return None
        try:
            self._store.write_home(home_rows.note_token_used, token.id, now=now)
        except StoreUnavailable:
            pass  # tokens work in a read-only home too
        return token

    @in_thread
    def valid_token(self, id: str) -> Token | None:
        """Return the token with this id; None if there is none, or it is no longer valid."""
        token = self._store.read_home(home_rows.token, id)
        return token if token is not None and token.is_good(self._parts.now()) else None

    secret = home_verb(digests.secret)

    # --- imports, exports and backups ---------------------------------------------------------------

    followed_logs = store_verb(turn_rows.followed_logs)
    note_followed = store_verb(turn_rows.note_followed_log, writes=True)

    @in_thread
    def note_project(self, session: str, project: str) -> None:
        """Record the project of a session (`core.projects`), with any key in it masked, unless it has one."""
        if self._store.read(self.space, turn_rows.project_of_session, session) is None:
            self._store.write(self.space, turn_rows.note_project, session, mask_name(project))

    imported = store_verb(turn_rows.imported_files)
    note_import = store_verb(turn_rows.note_imported_file, writes=True)
    known_client_ids = store_verb(turn_rows.known_client_ids)
    client_turns = store_verb(turn_rows.client_turns)

    @in_thread
    def export(
        self, target: Path, *, spaces: Sequence[str] | None = (), tell: ReportProgress = ignore_progress
    ) -> Exported:
        """Write this space (or `spaces`; None means all) to a new file, without forgotten rows.

        Raises NotFound for an empty space, InvalidInput if the file exists, StoreUnavailable if it cannot be written.
        """
        from mcp_memory.service.portable.writing import export

        self._parts.indexing.catch_up()
        chosen = None if spaces is None else spaces or [self.space]
        return export(self._store, target, chosen, tell=tell)

    @in_thread
    def take_in(self, parcel: Parcel, space: str, *, tell: ReportProgress = ignore_progress) -> Brought:
        """Import a space of an export into the current space, except rows that were forgotten here.

        Rows imported before are updated. Rows that the exporting memory has forgotten since the last import are
        forgotten here too, which can be undone.
        """
        from mcp_memory.service.portable.bringing import import_space

        done = import_space(
            self._store,
            parcel,
            space,
            self.space,
            now=self._parts.now,
            doubts=_quarantine_reasons,
            forget=lambda ids, reason: self._forget(ids, reason=reason, how="import").id,
            undo=self._undo,
            tell=tell,
        )
        self._refresh()
        return done

    @in_thread
    def tell(self, statements: Sequence[StatementToImport]) -> ImportedStatementsReport:
        """Store statements of another memory, each once.

        A statement with a known id and a new text replaces its earlier text. Forgotten statements are not
        stored again.
        """
        from mcp_memory.longterm.verification.claims import check_claim

        parts, store, space = self._parts, self._store, self.space
        secret = store.read_home(digests.secret, "statement ids")
        forgotten = store.read(space, importing.forgotten_statements, [statement.wordings for statement in statements])
        stored = quarantined = repeated = kept_out = 0
        for place, statement in enumerate(statements):
            # An earlier version stored the id unkeyed.
            id = statement.id and keyed_id(secret, statement.id)
            ids_here = store.read(space, importing.known_as, [name for name in (id, statement.id) if name])
            id_here = next(iter(ids_here.values()), None)
            before = store.read(space, atom_rows.by_ids, [id_here]) if id_here else []
            if place in forgotten or (id_here and not before):
                kept_out += 1
                continue
            if before and before[0].text == statement.atom.text:
                repeated += 1
                continue
            new = replace(statement.atom, supersedes=[atom.id for atom in before if atom.valid_to is None])
            atom, _ = check_claim(store, space, new, embed=QueryVectors(parts.indexing).embed)
            written = store.write(space, atom_rows.add, atom, now=parts.now())
            if id:
                store.write(space, importing.note_origins, {id: written.atom.id})
            repeated += written.duplicate
            stored += not written.duplicate
            quarantined += bool(atom.held) and not written.duplicate
        if stored:
            self._refresh()
        return ImportedStatementsReport(stored=stored, quarantined=quarantined, repeated=repeated, forgotten=kept_out)

    @property
    def has_files(self) -> bool:
        """Whether the memory is in files on this machine."""
        return self._parts.embedded is not None

    @in_thread
    def backups(self) -> list[Backup]:
        """Return the backups in the home, the newest first, without verifying them; none for PostgreSQL."""
        from mcp_memory.service.upkeep.backup import folder_of, list_backups

        return list_backups(folder_of(self.settings.home)) if self.has_files else []

    @in_thread
    def back_up(self) -> Backup:
        """Back up all spaces of the home into a file there, and verify it. Other processes may keep writing.

        Raises Refused for a memory in PostgreSQL, StoreUnavailable if the disk is full, Damaged if the file differs
        from the data that was written.
        """
        from mcp_memory.service.upkeep.backup import back_up

        embedded = self._parts.embedded
        if embedded is None:
            raise Refused("No backup was made: this memory is in PostgreSQL. Use the backups of the server.")
        return back_up(embedded, self.settings.home, now=self._parts.now().astimezone())

    # --- review -------------------------------------------------------------------------------------

    @reading
    def waiting(self, *, limit: int = 100) -> list[Reviewed]:
        """Return the quarantined rows with their texts, newest first."""
        self._parts.indexing.catch_up()
        return self._with_texts(self._store.read(self.space, quarantine_rows.list_quarantined, limit=limit))

    @reading
    def decided(self, *, limit: int = 50) -> list[Reviewed]:
        """Return the rows that were released or kept in quarantine, with their texts, the last decision first."""
        return self._with_texts(
            self._store.read(self.space, quarantine_rows.list_quarantined, decided=True, limit=limit)
        )

    @reading
    def why_held(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the reasons for each of these rows that is quarantined, by id. Answers mark such rows."""
        self._parts.indexing.catch_up()
        rows = self._store.read(self.space, quarantine_rows.list_quarantined, ids)
        return {row.id: tuple(row.reasons) for row in rows if row.is_quarantined}

    @in_thread
    def review(self, ids: Sequence[str], verdict: Verdict | None) -> list[Reviewed]:
        """Release quarantined rows for recall (`released`), or exclude them for good (`kept`).

        With None they wait for a decision again.

        Raises InvalidInput without ids, NotFound, changing nothing, if a row was never quarantined.
        """
        if not ids:
            raise InvalidInput(
                "No ids were given. Give ids such as a5 or t8; `mcp-memory review` lists the quarantined rows."
            )
        rows = self._store.write(self.space, quarantine_rows.review, ids, verdict, now=self._parts.now())
        self._refresh()
        return self._with_texts(rows)

    @in_thread
    def scan(self) -> list[Reviewed]:
        """Judge all stored rows as new rows are judged; quarantine suspicious rows, and return these rows.

        Turns stored before secrets were masked are quarantined if they have a secret.
        """
        from mcp_memory.longterm.verification.trust import judge_turns
        from mcp_memory.suspicion.flags import flags

        store = self._store
        ids: list[str] = []
        for turns in self._turn_pages():
            reasons: dict[str, tuple[str, ...]] = {}
            for turn, why in zip(turns, judge_turns(store, self.space, turns, has_attacks=True), strict=True):
                secret = ["secret"] if holds_secret(turn.content, prose=turn.role != "tool") else []
                reasons[turn.id] = (*why, *secret)
            ids += self._quarantine(reasons)
        last: str | None = None
        while atoms := store.read(self.space, atom_rows.list_atoms, filters=Filters(), after=last, limit=_PAGE):
            last = atoms[-1].id
            ids += self._quarantine({atom.id: flags(atom.text, atom.source) for atom in atoms})
        if ids:
            self._write_persona()
        return self._with_texts(store.read(self.space, quarantine_rows.list_quarantined, ids)) if ids else []

    def _quarantine(self, reasons: Mapping[str, tuple[str, ...]]) -> list[str]:
        """Quarantine rows that have reasons, unless they were quarantined or reviewed before; return their ids."""
        flagged = {id: why for id, why in reasons.items() if why}
        before = (
            {row.id for row in self._store.read(self.space, quarantine_rows.list_quarantined, flagged)}
            if flagged
            else set[str]()
        )
        new = {id: why for id, why in flagged.items() if id not in before}
        if new:
            self._store.write(self.space, quarantine_rows.quarantine, new, now=self._parts.now())
        return list(new)

    def _turn_pages(self) -> Iterator[list[Turn]]:
        for session in self._store.read(self.space, turn_rows.sessions, limit=1_000_000):
            start = 0
            while page := self._store.read(
                self.space, turn_rows.session_turns, session.session, start=start, limit=_PAGE
            ):
                yield [turn for turn in page if turn.role != "note"]
                start = page[-1].position + 1

    def _with_texts(self, rows: Sequence[Held]) -> list[Reviewed]:
        store, ids = self._store, [row.id for row in rows]
        sources: dict[str, Turn | Atom] = {
            **{turn.id: turn for turn in store.read(self.space, turn_rows.by_ids, [id for id in ids if id[0] == "t"])},
            **{atom.id: atom for atom in store.read(self.space, atom_rows.by_ids, [id for id in ids if id[0] == "a"])},
        }
        return [_reviewed_row(row, sources[row.id]) for row in rows if row.id in sources]


def _expiry(now: datetime, span: timedelta) -> datetime:
    try:
        return now + span
    except OverflowError:
        raise InvalidInput(
            "expires is too far in the future. Without it, the token is valid until it is revoked."
        ) from None


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _quarantine_reasons(row: TurnRow | AtomRow) -> tuple[str, ...]:
    """Return why an imported row is quarantined: it reads like an injected instruction, or contains a secret.

    Imported rows are not masked, since their hashes and quotes are of the original words.
    """
    from mcp_memory.longterm.verification.trust import source_of_role
    from mcp_memory.store.row_types import TurnRow
    from mcp_memory.suspicion.flags import flags

    if isinstance(row, TurnRow):
        text, prose = row.content, row.role != "tool"
        reasons = (*flags(text, source_of_role(row.role, row.name), is_turn=True), *flags(row.name or "", "tool"))
    else:
        text, prose = row.text, True
        reasons = flags(text, row.source)
    return tuple(dict.fromkeys((*reasons, *(["secret"] if holds_secret(text, prose=prose) else []))))


def _reviewed_row(row: Held, source: Turn | Atom) -> Reviewed:
    from mcp_memory.longterm.verification.trust import source_of_turn

    match source:
        case Turn():
            kind, speaker, session, text = "turn", source_of_turn(source), source.session, source.content
        case Atom():
            kind, speaker, session, text = source.kind, source.source, None, source.text
    return Reviewed(
        id=row.id,
        reasons=list(row.reasons),
        at=row.at,
        verdict=row.verdict,
        source=speaker,
        session=session,
        text=text,
        kind=kind,
        reviewed_at=row.reviewed_at,
    )
