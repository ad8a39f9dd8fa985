"""A suite's result as JUnit XML, which build servers show as a test report.

In: entries. Out: one XML document. Settled here: characters that XML cannot carry become U+FFFD.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memmodel.batch import Entry

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

TAIL = "\n</testsuite>\n"
_ROOM = 200
"""Characters of the head's counts, whatever they are: it is written again when they are known."""


def head(kinds: Sequence[str], seconds: float, started: str) -> str:
    """What stands before the cases; as long for any number of them. `started`: when, in ISO 8601."""
    counts = f'tests="{len(kinds)}" failures="{kinds.count("failure")}" errors="{kinds.count("error")}"'
    counts += f' skipped="{kinds.count("skipped")}" time="{seconds:.3f}" timestamp={_attribute(started)}'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="memmodel" {counts:<{_ROOM}}>\n'


def case(entry: Entry) -> tuple[str, str]:
    """What became of an entry (`passed`, `failure`, `error` or `skipped`), and its element."""
    kind = _kind(entry)
    return kind, _case(entry, kind)


def _kind(entry: Entry) -> str:
    from memmodel.batch import Outcome

    kinds = {
        Outcome.AS_EXPECTED: "passed",
        Outcome.DIFFERS: "failure",
        Outcome.NO_EXPECTATION: "skipped",
        Outcome.KNOWN: "skipped",
    }
    return kinds.get(entry.outcome, "error")


def _case(entry: Entry, kind: str) -> str:
    times = entry.report.times if entry.report else None
    seconds = (times.parse + times.encode + times.solve) / 1000 if times else 0.0
    names = f"classname={_attribute(entry.model or 'memmodel')} name={_attribute(entry.path)}"
    head = f'  <testcase {names} time="{seconds:.3f}"'
    if kind == "passed":
        return head + "/>"
    report = entry.report
    message = entry.message
    if report is not None and not message:
        message = report.answer.observation.value
        message += f", expected {report.expected}" if report.expected else "; no expectation"
    if kind == "skipped":
        return f"{head}><skipped message={_attribute(message)}/></testcase>"
    detail = report.explain() if report else entry.message
    first = message.split("\n", 1)[0]
    tag = f"<{kind} type={_attribute(entry.outcome.value)} message={_attribute(first)}>"
    return f"{head}>{tag}{_text(detail)}</{kind}></testcase>"


def _attribute(text: str) -> str:
    line = _text(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")
    return f'"{line}"'


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
