"""Sentences of the PTX ISA, drawn at random, and the page about the tests that would notice if they were forgotten.

`python -m helpers.sentences PAGES…` in `tests` prints `COUNT` sentences of folders of pages (Markdown, a file each),
each with the heading under which it stands. The pages are not part of this project. tests/data/sentences.toml has the
sentences that were drawn, each with its verdict, and `page` makes docs/sentences.md of it. Of
tests/data/missed_sentences.toml, sentences that reviewers found missing, `missed_page` makes docs/sentences-missed.md.
"""

from __future__ import annotations

import random
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from helpers.places import ROOT

DATA = ROOT / "tests" / "data" / "sentences.toml"
PAGE = ROOT / "docs" / "sentences.md"
SEED = 20261124
COUNT = 100

CHAPTERS = (
    r"5\.1\.[1-7]", r"8\.", r"9\.3", r"9\.5", r"9\.7\.9\.(?!3\.|4\.|7\.|18\.|21\.|22\.)",
    r"9\.7\.10\.(8|12|28)\.", r"9\.7\.1[2-6]\.", r"9\.7\.18\.(7|12)\.", r"9\.7\.19\.5\.", r"11\.4\.", r"11\.7\.",
    r"11\.8\.1",
)  # fmt: skip
"""The sections about what memmodel models, as the numbers of PTX ISA 9.1 and, where a section is new, of 9.4."""

LAYOUT = re.compile(
    r"Fragments? for|^[\d.]+ (Layout|Canonical|Sparse matrix storage|Matrix Shape|Sparsity)|Layouts? (of|and)|Metadata"
)
"""Headings of sections that say which lane or byte holds which element of a matrix."""
RULE = re.compile(
    r"must|should|shall|cannot|can only|may not|illegal|undefined|unless|until|before|prior|after|guarantee|order"
    r"|default|treated|synchroni|visib|wait|block|weak|strong|scope|prox(y|ies)|atomic|\bonly\b|\bnot?\b|same|assumed"
    r"|perform|equivalent|synonym|complet|allow|valid|requir|support|return|cause|relat|preced|overlap|\bif\b|\bwhen\b",
    re.IGNORECASE,
)
"""Words of sentences that say what is so under some condition, rather than what a word is a name of."""

ASIDE = re.compile(r"^(PTX ISA Notes|Target ISA Notes|Examples?|Notes?|Syntax|Semantics)\s*:?$")
"""Lines after which nothing is a sentence of the description, until the next heading or `BACK`."""
BACK = re.compile(r"^(Description|Operands|Qualifiers|Conditions|Parameters)\s*$")
NO_PROSE = re.compile(r" \| |^(---|title:|section:|url:|\s{4}[^*\d])")
"""Rows of tables, the front matter of a page, lines of code."""
POINTER = re.compile(
    r"(described|defined|shown) in( the)? [A-Z][\w ]*\.$"
    r"|^(Refer|See|For (more|further) |Details|The (following|table)|Supported addressing)|(Table|Figure) \d"
)
"""Sentences that only point to others."""
END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)(?<=[.!])\s+(?=[A-Z`‘“(])")


def _plain(text: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\(<?#[^)]*\)", r"\1", text)
    return re.sub(r"(?<![\w`])_([^`]+?)_(?![\w`])", r"\1", re.sub(r"\s+", " ", text)).replace(" ,", ",").strip()


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each paragraph or item of a list of the descriptions of a page, with the heading that it stands under."""
    heading, aside, paragraph = "", False, list[str]()
    for line in [*lines, ""]:
        stripped = line.strip()
        if line.startswith("#"):
            heading, aside = _plain(stripped.lstrip("# ")), False
        elif ASIDE.match(stripped):
            aside = True
        elif BACK.match(stripped):
            aside = False
        elif stripped and not aside and not NO_PROSE.search(line):
            item = re.match(r"^\s*(\*|\d+\.)\s+", line)
            if item and paragraph:
                yield heading, _plain(" ".join(paragraph))
                paragraph = []
            paragraph.append(line[item.end() :] if item else stripped)
            continue
        if paragraph:
            yield heading, _plain(" ".join(paragraph))
            paragraph = []


def _counts(sentence: str) -> bool:
    """True if a sentence says a rule."""
    complete = sentence.endswith(".") and len(sentence.split()) > 6
    return complete and RULE.search(sentence) is not None and not POINTER.search(sentence)


def population(folders: Sequence[Path]) -> list[tuple[str, str]]:
    """All sentences of the sections in `CHAPTERS`, each once, with the heading under which it stands first."""
    sentences: dict[str, str] = {}
    for path in sorted(path for folder in folders for path in folder.rglob("*.md")):
        for heading, block in _blocks(path.read_text(encoding="utf-8").splitlines()):
            if LAYOUT.search(heading) or not any(re.match(chapter, heading) for chapter in CHAPTERS):
                continue
            for sentence in filter(_counts, END.split(block)):
                sentences.setdefault(sentence, heading)
    return [(heading, sentence) for sentence, heading in sentences.items()]


def drawn(sentences: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """`COUNT` of the sentences at random, the same ones for the same pages, in the order of the pages."""
    return [sentences[i] for i in sorted(random.Random(SEED).sample(range(len(sentences)), COUNT))]


def _linked(names: Sequence[str]) -> list[str]:
    """Tests by their names, as a page has them: litmus files are links."""
    return [
        f"[`{name.removeprefix('litmus/').removesuffix('.litmus')}`](../{name})"
        if name.endswith(".litmus")
        else f"`{name.removeprefix('tests/')}`"
        for name in names
    ]


@dataclass(frozen=True)
class Sentence:
    """A sentence that was drawn, with the title of its page, and what is known of it.

    `verdict`: test, refused, not observable or missed. `by`: the tests that notice, `file::name` or a litmus file.
    `line` and `says`: an instruction that is refused, and a part of the reason. `found`: what the search for the test
    changed: `mended`, the implementation, or `added`, the tests alone.
    """

    page: str
    text: str
    verdict: str
    by: tuple[str, ...] = ()
    line: str = ""
    says: str = ""
    found: str = ""
    why: str = ""

    @property
    def item(self) -> str:
        """The sentence as an item of the page."""
        label = self.verdict + (f", {self.found}" if self.found else "")
        names = _linked(self.by)
        said = [f"*… {self.says} …*"] if self.says else []
        return f"- {self.text}\n  **{label}**: {' '.join([', '.join(names + said), self.why]).strip()}"


def stored() -> list[Sentence]:
    """The sentences of tests/data/sentences.toml, in the order of their pages."""
    entries = tomllib.loads(DATA.read_text(encoding="utf-8"))["sentence"]
    return [Sentence(**{**entry, "by": tuple(entry.get("by", ()))}) for entry in entries]


INTRODUCTION = """# {count} sentences of the PTX ISA

{count} sentences of the PTX ISA, drawn at random by `tests/helpers/sentences.py`, each with the test that notices if it
is forgotten, or the reason why none can. They are drawn from {population} sentences: of the pages of PTX ISA 9.1 about
what memmodel models (the memory consistency model, state spaces, predicates and divergence, data movement, control
flow, synchronization, matrices of warps and warpgroups, tcgen05, directives), and of what 9.2 to 9.4 added to chapter
8, ld, st.async, asynchronous copies, mbarrier and tcgen05. Left out are notes, syntax, examples, tables, the sections
that say which lane holds which element of a matrix, and sentences without a word of rules such as *must*, *undefined*,
*before* or *default*. Where 9.4 says a sentence otherwise, its words stand here.

A sentence is not taken to be tested because a test has its name. For most, the sentence was taken out of the
implementation or of the model for a moment, and the test failed. When they were drawn, {mended} were not in the
implementation (*mended*), and for {added} more no test would have noticed (*added*).

| verdict | sentences | |
|---|---|---|
{rows}

This page is made of `tests/data/sentences.toml` by `MEMMODEL_REWRITE=1 pytest tests/docs/test_sentences.py`.
"""
MEANINGS = {
    "test": "a test fails without it",
    "refused": "what it is about is refused, with the reason that is quoted",
    "not observable": "about hardware, values that are not computed, or nothing that an answer depends on",
    "missed": "no test notices, or the implementation lacks it",
}
POPULATION = 1198
"""Sentences in the pages from which tests/data/sentences.toml was drawn."""


def page(sentences: Sequence[Sentence]) -> str:
    """docs/sentences.md."""
    verdicts, changes = Counter(s.verdict for s in sentences), Counter(s.found for s in sentences)
    text = INTRODUCTION.format(
        count=len(sentences),
        population=f"{POPULATION:,}",
        mended=changes["mended"],
        added=changes["added"],
        rows="\n".join(f"| {verdict} | {verdicts[verdict]} | {meaning} |" for verdict, meaning in MEANINGS.items()),
    )
    for title, group in groupby(sentences, lambda sentence: sentence.page):
        text += f"\n## {title}\n\n" + "\n".join(sentence.item for sentence in group) + "\n"
    return text


MISSED_DATA = ROOT / "tests" / "data" / "missed_sentences.toml"
MISSED_PAGE = ROOT / "docs" / "sentences-missed.md"
MISSED_INTRODUCTION = """# Sentences that were missed

Reviewers with fresh eyes found these sentences missing in the model. Each stands here with the tests that notice now,
in litmus tests and in kernels, and with the sentences like it that were tried then. The litmus tests are read back as
kernels as well (`tests/kernel/export/test_roundtrip.py`).

This page is made of `tests/data/missed_sentences.toml` by `MEMMODEL_REWRITE=1 pytest tests/docs/test_sentences.py`.
"""


@dataclass(frozen=True)
class Sibling:
    """A sentence like one that was missed: what it is about, and the tests of it."""

    what: str
    by: tuple[str, ...]


@dataclass(frozen=True)
class MissedSentence:
    """A sentence that was missed, its page, what memmodel says today, and the tests of both entrances."""

    title: str
    sentence: str
    page: str
    today: str
    litmus: tuple[str, ...]
    kernels: tuple[str, ...]
    siblings: tuple[Sibling, ...]

    @property
    def tests(self) -> tuple[str, ...]:
        """All tests that are named."""
        return (*self.litmus, *self.kernels, *(name for sibling in self.siblings for name in sibling.by))

    @property
    def section(self) -> str:
        """The sentence as a section of the page."""
        lines = [f"## {self.title}", "", f"What the pages say: {self.sentence} ({self.page})", "", self.today, ""]
        lines += [f"- litmus tests: {', '.join(_linked(self.litmus))}"] if self.litmus else []
        lines.append(f"- kernels: {', '.join(_linked(self.kernels)) or 'the same tests, read back'}")
        for sibling in self.siblings:
            tests = ", ".join(_linked(sibling.by))
            lines.append(f"- tried: {sibling.what}" + (f": {tests}" if tests else ""))
        return "\n".join(lines) + "\n"


def missed() -> list[MissedSentence]:
    """The sentences of tests/data/missed_sentences.toml."""
    entries = tomllib.loads(MISSED_DATA.read_text(encoding="utf-8"))["missed"]
    return [
        MissedSentence(
            entry["title"], entry["sentence"], entry["page"], entry["today"], tuple(entry["litmus"]),
            tuple(entry["kernels"]),
            tuple(Sibling(sibling["what"], tuple(sibling["by"])) for sibling in entry["siblings"]),
        )
        for entry in entries
    ]  # fmt: skip


def missed_page(sentences: Sequence[MissedSentence]) -> str:
    """docs/sentences-missed.md."""
    return "\n".join([MISSED_INTRODUCTION, *(sentence.section for sentence in sentences)])


if __name__ == "__main__":
    every = population([Path(name) for name in sys.argv[1:]])
    print(f"{COUNT} of {len(every):,} sentences")
    for heading, sentence in drawn(every):
        print(f"{heading}\n    {sentence}")
