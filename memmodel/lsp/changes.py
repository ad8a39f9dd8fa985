"""Changes of a document: into its canonical form, or as `fix` and `weaken` propose.

In: Document. Out: text edits as the protocol has them. Settled here: only the lines that differ are replaced.
"""

from __future__ import annotations

from difflib import SequenceMatcher

from memmodel import api
from memmodel.answer import Budget
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.library import format as canonical
from memmodel.lsp.document import Document, Json
from memmodel.source import line_end


def formatted(document: Document) -> Json:
    """`edits` to the canonical form, or `reason` why there are none."""
    try:
        new = canonical(document.source)
    except InputError as error:
        return {"edits": [], "reason": error.message}
    return {"edits": edits(document, new), "reason": ""}


def edits(document: Document, new: str) -> list[Json]:
    """The edits that turn the text of the document into `new`; each replaces whole lines."""
    old = [f"{line}\n" for line in document.lines]
    wanted = new.removesuffix("\n").split("\n") if new.endswith("\n") else new.split("\n")
    after = [f"{line}\n" for line in wanted]
    if document.lines[-1] == "":
        after.append("\n")
    changes: list[Json] = []
    end = line_end(document.text)
    for tag, first, last, new_first, new_last in SequenceMatcher(None, old, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        text = "".join(after[new_first:new_last])
        if last == len(old):  # the last line has no end of its own
            text = text.removesuffix("\n")
            start = document.position(sum(map(len, old[:first])))
            if first == len(old):
                text = "\n" + text
            changes.append(
                {"range": {"start": start, "end": document.whole()["end"]}, "newText": text.replace("\n", end)}
            )
        else:
            lines = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
            changes.append({"range": lines, "newText": text.replace("\n", end)})
    return changes


def repaired(document: Document, what: str, model: str, effort: int, seconds: float, memory: int) -> Json:
    """`edits` of the best repair (`fix`) or of the cheapest program (`weaken`), its `title`, or `reason` for none."""
    try:
        options = Options(budget=Budget(effort, seconds, memory))
        models = (api.load(model),)
        if what == "fix":
            from memmodel.repair.fix import fix

            fixed = fix(document.source.name, document.source.text, models, options, most=1, seconds=seconds)
            if not fixed.repairs:
                return {"edits": [], "title": "", "reason": fixed.reason or "no repair within these bounds"}
            new, changes = fixed.repairs[0].new, fixed.repairs[0].changes
        else:
            from memmodel.repair.weaken import weaken

            weaker = weaken(document.source.name, document.source.text, models, options)
            if not weaker.changes:
                return {"edits": [], "title": "", "reason": weaker.reason or "nothing can be dropped or narrowed"}
            new, changes = weaker.new, weaker.changes
    except InputError as error:
        return {"edits": [], "title": "", "reason": error.message}
    title = "; ".join(edit.what for edit in changes)
    return {"edits": edits(document, new), "title": title, "reason": ""}
