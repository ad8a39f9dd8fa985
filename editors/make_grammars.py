"""The TextMate grammars of the extension, written from the tables of memmodel.

`python editors/make_grammars.py` writes them; tests/lsp/test_editors.py says whether they are those of today.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from memmodel.base.kinds import Kind
from memmodel.cat.names import BASE_NAMES
from memmodel.cat.text.lexer import CHECK_WORDS, IGNORED_WORDS, STATEMENT_WORDS, WORDS
from memmodel.isa.table import HEADS
from memmodel.litmus.declarations import SPACES, TYPES
from memmodel.litmus.header import DROPPED
from memmodel.litmus.header import WORDS as EXPECTED
from memmodel.litmus.lexer import RESERVED
from memmodel.litmus.syntax import FINDINGS

FOLDER = Path(__file__).parent / "vscode" / "syntaxes"
Grammar = dict[str, object]


def either(words: Iterable[str]) -> str:
    """Any of the words, the longest first."""
    return "|".join(re.escape(word) for word in sorted(set(words), key=lambda word: (-len(word), word)))


def rule(name: str, pattern: str, **captures: str) -> Grammar:
    """What a pattern is called; `_1` is its first group."""
    found: Grammar = {"match": pattern}
    if name:
        found["name"] = name
    if captures:
        found["captures"] = {key.lstrip("_"): {"name": value} for key, value in captures.items()}
    return found


def block(name: str, begin: str, end: str) -> Grammar:
    """What stands between two marks."""
    return {"name": name, "begin": begin, "end": end}


NESTING: Grammar = {
    "name": "comment.block.memmodel",
    "begin": r"\(\*",
    "end": r"\*\)",
    "patterns": [{"include": "#nesting"}],
}


def litmus() -> Grammar:
    """Tests, in both layouts."""
    heads = either(head for head, row in HEADS.items() if not row.modules)
    mnemonic = rf"(?<![\w.%$])({heads})((?:\.[\w:]+)*)(?![\w.$]|\s*[:=@])"
    patterns = [
        rule("", r"^(PTX)\s+(\S+)", _1="keyword.control.litmus", _2="entity.name.section.litmus"),
        {
            "begin": r"^\s*(Expect)\s*=(?!=)",
            "end": r"$",
            "beginCaptures": {"1": {"name": "keyword.control.litmus"}},
            "patterns": [rule("", rf"([^\s:]+):((?:(?:{either(EXPECTED)})\+?)+)", _1="entity.name.type.litmus",
                              _2="constant.language.litmus")],
        },
        rule("comment.line.litmus", rf"^\s*(?:{either(DROPPED)})\s*=(?!=).*$"),
        {"include": "#nesting"},
        block("comment.block.litmus", r"/\*", r"\*/"),
        rule("comment.line.double-slash.litmus", r"//.*$"),
        block("string.quoted.double.litmus", '"', '"'),
        rule("", rf"(~?\s*exists|forall)\s+({either(FINDINGS)})\b", _1="keyword.control.litmus",
             _2="constant.language.litmus"),
        rule("", r"\b(thread)\s+([A-Za-z_$][\w$]*)", _1="keyword.control.litmus", _2="entity.name.function.litmus"),
        rule("keyword.control.litmus", rf"~?\s*\b(?:{either(RESERVED)})\b(?![.])"),
        rule("keyword.other.place.litmus", r"(?<=[@,])\s*(?:gpu|grid|cluster|cta|warp)(?=\s+\d)"),
        rule("", mnemonic, _1="keyword.mnemonic.litmus", _2="storage.modifier.qualifier.litmus"),
        rule("storage.type.litmus", rf"(?<![\w\])])\.(?:{either([*TYPES, 'pred'])})\b"),
        rule("storage.modifier.litmus", rf"(?<![\w\])])\.(?:{either([*SPACES, 'align', 'reg'])})\b"),
        rule("support.function.litmus", r"\b(?:mbarrier|tensormap|multimem)(?=\s*\()"),
        rule("variable.other.register.litmus", r"%[A-Za-z_$][\w$.]*"),
        rule("", r"\b([A-Za-z_$][\w$]*):(?=[A-Za-z_%$])", _1="entity.name.function.litmus"),
        rule("entity.name.label.litmus", r"\b[A-Za-z_$][\w$]*(?=\s*:)"),
        rule("constant.numeric.litmus", r"(?<![\w.])-?(?:0[xX][0-9a-fA-F]+U?|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?U?)\b"),
        rule("keyword.operator.litmus", r"/\\|\\/|==|!=|<=|>=|[<>=~@!]"),
    ]  # fmt: skip
    return {
        "name": "Litmus test (PTX)",
        "scopeName": "source.litmus",
        "fileTypes": ["litmus"],
        "patterns": patterns,
        "repository": {"nesting": NESTING},
    }


def cat() -> Grammar:
    """Models."""
    edge = r"(?![\w.]|-(?!>|1))"
    base = {kind: [one.name for one in BASE_NAMES if one.kind is kind] for kind in Kind}
    later = ("from", "then", "else", "do", "subset", "not", "override", "assert", "default", "catdep", "cut")
    words = {*WORDS, *STATEMENT_WORDS, *IGNORED_WORDS, *later}
    name = r"[A-Za-z_](?:[\w.]|-(?!>|1))*'?"
    patterns = [
        {"include": "#nesting"},
        block("comment.block.cat", r"/\*", r"\*/"),
        rule("comment.line.cat", r"(?://|#).*$"),
        rule("string.quoted.double.cat", r'"[^"\n]*"'),
        rule("", rf"\b(let)\s+((?:rec\s+)?)({name})", _1="keyword.control.cat", _2="keyword.control.cat",
             _3="entity.name.function.cat"),
        rule("", rf"\b(as)\s+({name})", _1="keyword.control.cat", _2="entity.name.tag.cat"),
        rule("keyword.other.check.cat", rf"(?<![\w.-])(?:{either(CHECK_WORDS)}){edge}"),
        rule("keyword.control.cat", rf"(?<![\w.-])(?:{either(words - set(CHECK_WORDS))}){edge}"),
        rule("constant.other.tag.cat", r"'[A-Za-z][\w.-]*"),
        rule("support.constant.set.cat", rf"(?<![\w.-])(?:{either(base[Kind.SET])}){edge}"),
        rule("support.function.relation.cat", rf"(?<![\w.-])(?:{either(base[Kind.RELATION])}){edge}"),
        rule("variable.other.cat", name),
        rule("keyword.operator.cat", r"\^-1|->|\+\+|\|\||[|&\\;*+?~^=\[\]]"),
    ]  # fmt: skip
    return {
        "name": "cat model",
        "scopeName": "source.cat",
        "fileTypes": ["cat"],
        "patterns": patterns,
        "repository": {"nesting": NESTING},
    }


GRAMMARS = {"litmus": litmus, "cat": cat}


def text(name: str) -> str:
    """The file of a grammar."""
    return json.dumps(GRAMMARS[name](), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    for one in GRAMMARS:
        (FOLDER / f"{one}.tmLanguage.json").write_text(text(one), encoding="utf-8")
