"""Answers about kernels, kept by content.

In: what was asked, and the text that it is about. Out: what was printed the last time, if nothing has changed since.
Settled here: the key has the text of the module and of its source, the launch, the options, every file of the models
and memmodel itself. What ran out of its budget is not kept, and neither is what leaves other files behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from memmodel.base.resources import axioms_dir, cache_dir
from memmodel.errors import InputError

if TYPE_CHECKING:
    from memmodel.cache.store import Store
    from memmodel.cli.kernels.request import KernelRequest
    from memmodel.kernel.order.verdict import KernelVerdict
    from memmodel.kernel.question.asking import KernelText

WITHOUT_EFFECT = (
    "json_out", "sarif_out", "short", "jobs", "timeout", "memory", "no_cache", "launch", "baseline",
    "resume", "executor",
)  # fmt: skip
"""Options that do not change an answer, and those whose files are read instead."""

OTHER_FILES = '"file"'
"""A launch description that names other files is not looked into."""


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """An answer in every form in which it may be asked for again. `code`: the exit code."""

    text: str
    short: str
    record: Any
    sarif: Any
    code: int


class KeptAnswers:
    """The answer to one question, where answers are kept."""

    def __init__(self, asked: KernelRequest, text: KernelText) -> None:
        self._asked, self._text = asked, text
        self._store, self._key = _store(asked), ""

    def find(self) -> KernelAnswer | None:
        """The answer, if it is known."""
        if self._store is None:
            return None
        self._key = _key(self._asked, self._text)
        data = json.loads(self._store.get(self._key) or "{}") if self._key else {}
        known = data.keys() == {field.name for field in fields(KernelAnswer)}
        return KernelAnswer(**data) if known else None

    def keep(self, verdict: KernelVerdict, code: int) -> KernelAnswer:
        """A new answer; it is kept where answers are."""
        from memmodel.kernel.output.record import record
        from memmodel.kernel.output.sarif import sarif
        from memmodel.kernel.output.text import lines, short

        answer = KernelAnswer(
            "\n".join(lines(verdict)), short(verdict, self._asked.file), record(verdict, file=self._asked.file),
            sarif([verdict]), int(code),
        )  # fmt: skip
        if self._store is not None and self._key and not verdict.spent:
            self._store.put(self._key, json.dumps(asdict(answer)))
            self._store.close()
        return answer

    @property
    def keeps(self) -> bool:
        """True if answers are kept."""
        return self._store is not None


def _store(asked: KernelRequest) -> Store | None:
    """Where answers are kept; None if this one is not."""
    from memmodel.cache.store import Store

    folder = cache_dir()
    if folder is None or asked.no_cache or asked.litmus or asked.write_baseline or asked.statistics:
        return None
    return Store(folder)


def _key(asked: KernelRequest, text: KernelText) -> str:
    """What the answer depends on; empty if that is not known."""
    from memmodel.cache import keys
    from memmodel.cat.load import load_model
    from memmodel.kernel.check.ignoring import ignored
    from memmodel.kernel.launch import MAX_TEXT
    from memmodel.source import read_bytes

    try:
        files = (asked.launch, asked.baseline)
        launch, baseline = (read_bytes(file, MAX_TEXT).hex() if file else "" for file in files)
        named = [ignored(function).texts for function in text.module.functions.values()]
    except InputError:
        return ""  # what reads it says what is wrong
    if max(len(launch), len(baseline)) > 2 * MAX_TEXT:
        return ""
    if bytes.fromhex(launch).find(OTHER_FILES.encode()) >= 0 or OTHER_FILES in text.written.text:
        return ""
    sources = {f"{name}\0{source and source.text}" for texts in named for name, source in texts.items()}
    options = [getattr(asked, field.name) for field in fields(asked) if field.name not in WITHOUT_EFFECT]
    return keys.digest(
        "kernel", keys.program(), *_shipped(), keys.of_model(load_model(asked.whole_model)), os.getcwd(), repr(options),
        text.module.source.name, text.module.source.text, text.written.name, text.written.text, repr(text.assumed),
        launch, baseline, *sorted(sources),
    )  # fmt: skip


def _shipped() -> Iterator[str]:
    """The text of every file of the shipped models: an answer names the readings on which it may depend."""
    for file in sorted(axioms_dir().rglob("*.cat")):
        yield f"{file.relative_to(axioms_dir())}\0{file.read_text(encoding='utf-8')}"
