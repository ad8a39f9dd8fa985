"""The process that answers questions about documents, and the side that asks it.

In: questions as JSON, each with its length in front, on standard input. Out: answers likewise. Settled here: the
process ends when its input does, whatever it is doing; one that takes too long is ended from outside, and the next
question starts another. It loads nothing from the folder that it runs in.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

_LENGTH = struct.Struct(">I")
_START = "import sys; sys.path.insert(0, sys.argv[1]); from memmodel.lsp.worker import main; main()"


def main() -> None:
    """Answer until standard input ends."""
    questions, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # printed text must not mix with the answers
    asked: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        while True:
            head = questions.read(_LENGTH.size)
            body = questions.read(*_LENGTH.unpack(head)) if len(head) == _LENGTH.size else b""
            if not body:
                os._exit(0)
            asked.put(body)

    threading.Thread(target=listen, name="memmodel-questions", daemon=True).start()
    while True:
        _answer(asked.get(), out)


def _answer(question: bytes, out: BinaryIO) -> None:
    from memmodel.lsp.features import answer

    try:
        reply = {"answer": answer(*json.loads(question))}
    except Exception as error:  # a bug of ours costs this answer, not the session
        reply = {"answer": None, "error": f"{type(error).__name__}: {error}"}
    body = json.dumps(reply).encode()
    with suppress(BrokenPipeError):
        out.write(_LENGTH.pack(len(body)) + body)
        out.flush()


class Asking:
    """One process, started when it is needed. Questions wait for each other."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def ask(
        self, name: str, document: dict[str, Any], arguments: dict[str, Any], seconds: float
    ) -> dict[str, Any]:
        """The key `answer`; if it is None, `error` says why: it took too long, or the process ended."""
        async with self._turn:
            try:
                return await asyncio.wait_for(self._asked([name, document, arguments]), seconds)
            except TimeoutError:
                self.stop()
                return {"answer": None, "error": f"{name} took more than {seconds:g} seconds"}
            except (OSError, asyncio.IncompleteReadError, ValueError) as error:
                self.stop()
                return {"answer": None, "error": f"the process that answers {name} ended: {error}"}
            except asyncio.CancelledError:
                self.stop()
                raise

    async def _asked(self, question: object) -> dict[str, Any]:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await self._start()
        assert process.stdin is not None and process.stdout is not None
        body = json.dumps(question).encode()
        process.stdin.write(_LENGTH.pack(len(body)) + body)
        await process.stdin.drain()
        (length,) = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
        reply: dict[str, Any] = json.loads(await process.stdout.readexactly(length))
        return reply

    async def _start(self) -> asyncio.subprocess.Process:
        root = Path(__file__).resolve().parents[2]
        return await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", _START, str(root),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip

    def stop(self) -> None:
        """End the process; the next question starts another."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
