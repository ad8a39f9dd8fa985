"""Texts by key, in one SQLite file that several processes share.

In: a folder, or a file of a person's own. Out: `Store`. Settled here: a store never fails its caller. What cannot be
read is missing; what cannot be written is not kept, and `trouble` says why. Keys are made of content, so an entry that
was right once stays right: loss costs time and nothing else. Therefore nothing waits for the disk, every entry has a
checksum, and a file that is damaged is replaced by an empty one.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from memmodel.errors import InputError
from memmodel.output import regular

T = TypeVar("T")

FILE = "verdicts.sqlite"
FORMAT = 1
OWNER = 0x4D4D564B
"""What marks a file as ours, in its header: a file that a person names is never replaced if it is something else."""
MOST = 256_000_000
"""Bytes of the file; beyond it, what was not used for the longest time goes."""

_LOOK_EVERY = 500
_TOUCH_EVERY = 100
_WAIT = 0.5
"""Seconds that a file which another process has locked is waited for, once: until it is free again it is not waited
for any more. An entry that is not kept costs time and nothing else."""

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT)
_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Store:
    """Texts by key. `trouble`: why nothing is kept any more; empty while all is well."""

    def __init__(self, folder: Path, most: int = MOST, name: str = FILE) -> None:
        self.path = folder / name
        self.trouble = ""
        self._most = most
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._rebuilt = False
        self._puts = 0
        self._wait = _WAIT
        self._used: list[str] = []

    @staticmethod
    def in_file(path: str) -> Store:
        """The store in a file that a person names, made if there is none. Raises InputError for any other file."""
        if not regular(path):
            raise InputError(f"{path}: not a plain file")
        place = Path(path)
        if not place.parent.is_dir():
            raise InputError(f"{path}: no such folder")
        if place.exists() and place.stat().st_size:
            with place.open("rb") as handle:
                head = handle.read(72)
            if not head.startswith(b"SQLite format 3\0") or head[68:72] != OWNER.to_bytes(4, "big"):
                raise InputError(f"{path}: no record of a suite", hint="name a new file")
        store = Store(place.parent, sys.maxsize, place.name)
        store.count_now()
        if store.trouble:
            raise InputError(f"{store.trouble.removeprefix('./')}: cannot be kept there")
        return store

    def get(self, key: str) -> str | None:
        """The text of a key, or None."""
        row = self._tried(lambda db: db.execute("SELECT day, seal, body FROM entry WHERE key = ?", (key,)).fetchone())
        if row is None:
            return None
        day, seal, body = row
        if not isinstance(body, bytes) or seal != _seal(key, body):
            self._tried(lambda db: db.execute("DELETE FROM entry WHERE key = ?", (key,)))
            return None
        if day != _today():
            self._used.append(key)
            if len(self._used) >= _TOUCH_EVERY:
                self._touch()
        return zlib.decompress(body).decode("ascii")

    def put(self, key: str, text: str) -> None:
        """Keep an ASCII text."""
        body = zlib.compress(text.encode("ascii"), 1)
        row = (key, _today(), _seal(key, body), body)
        self._tried(lambda db: db.execute("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", row))
        self._puts += 1
        if self._puts % _LOOK_EVERY == 0:
            self._tried(self._prune)

    def close(self) -> None:
        """Write down what was used, and let go of the file."""
        self._touch()
        if self._connection is not None and self._process == os.getpid():
            self._connection.close()
        self._connection = None

    def remove(self) -> None:
        """Delete the file. Raises OSError."""
        self.close()
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def count(self) -> int:
        """The number of entries."""
        return self.count_now() if self.path.exists() else 0

    def count_now(self) -> int:
        """As `count`; the file is made if there is none."""
        row = self._tried(lambda db: db.execute("SELECT count(*) FROM entry").fetchone())
        return int(row[0]) if row else 0

    # ---- below -------------------------------------------------------------------------------------------------------

    def _tried(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do some work with the file; None if it cannot be done."""
        for _ in range(2):
            if self.trouble:
                return None
            try:
                value = work(self._open())
                self._wait_for_locks(_WAIT)
                return value
            except (sqlite3.Error, OSError) as error:
                if not self._restored(error):
                    return None
        return None

    def _restored(self, error: Exception) -> bool:
        """Shall it be tried again? Replaces a damaged file, once."""
        code = getattr(error, "sqlite_errorcode", None)
        kind = code & 0xFF if isinstance(code, int) else None
        if kind in _PASSING:
            self._wait_for_locks(0.0)
            return False
        if kind in _DAMAGED and not self._rebuilt:
            self._rebuilt = True
            try:
                self._used.clear()
                self.remove()
                return True
            except (OSError, sqlite3.Error) as second:
                error = second
        self.trouble = f"{self.path}: {getattr(error, 'strerror', None) or error}"
        return False

    def _wait_for_locks(self, seconds: float) -> None:
        """From now on, wait so long for a file that is locked."""
        if seconds != self._wait:
            self._wait = seconds
            if self._connection is not None and self._process == os.getpid():
                self._connection.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    def _open(self) -> sqlite3.Connection:
        """The connection of this process: one that was opened before a fork must not be used after it."""
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(self.path, timeout=self._wait, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA synchronous = OFF")
            if connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
                _make(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._process = connection, os.getpid()
        self._prune(connection)
        return connection

    def _touch(self) -> None:
        keys, self._used = self._used, []
        if keys:
            rows = [(_today(), key) for key in keys]
            self._tried(lambda db: _at_once(db, lambda: db.executemany("UPDATE entry SET day = ? WHERE key = ?", rows)))

    def _prune(self, db: sqlite3.Connection) -> None:
        """Drop what was not used for the longest time, until a quarter of the room is free."""
        if os.path.getsize(self.path) <= self._most:
            return
        excess = os.path.getsize(self.path) - self._most * 3 // 4
        doomed: list[tuple[str]] = []
        for key, size in db.execute("SELECT key, length(body) + 200 FROM entry ORDER BY day, rowid"):
            if excess <= 0:
                break
            doomed.append((key,))
            excess -= size
        _at_once(db, lambda: db.executemany("DELETE FROM entry WHERE key = ?", doomed))


def _make(db: sqlite3.Connection) -> None:
    """An empty store in place of whatever is there. Another process may be at it too."""
    db.execute("PRAGMA auto_vacuum = FULL")

    def tables() -> None:
        if db.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            db.execute("DROP TABLE IF EXISTS entry")
            db.execute("CREATE TABLE entry (key TEXT PRIMARY KEY, day INTEGER, seal BLOB, body BLOB)")
            db.execute(f"PRAGMA application_id = {OWNER}")
            db.execute(f"PRAGMA user_version = {FORMAT}")

    _at_once(db, tables)


def _at_once(db: sqlite3.Connection, work: Callable[[], object]) -> None:
    """All of some work, or nothing of it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        work()
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _seal(key: str, body: bytes) -> bytes:
    return hashlib.blake2b(key.encode() + body, digest_size=16).digest()


def _today() -> int:
    return int(time.time() // 86_400)
