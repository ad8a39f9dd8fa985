"""Read a cat text: its title and its statements.

In: Source. Out: tree.Text. Settled here: syntax only; names and kinds are `cat.resolve`'s. The comment above a
statement, or else the one that ends its last line, becomes its `doc`.
"""

from __future__ import annotations

from bisect import bisect_left

from memmodel.cat.expressions import ExpressionParser, describe
from memmodel.cat.lexer import CHECK_WORDS, STATEMENT_WORDS, Lexeme
from memmodel.cat.tree import Include, Let, Ref, Show, Statement, Test, Text, Unshow
from memmodel.errors import InputError, nearest
from memmodel.source import Source

OVERRIDE = "override"


def parse(source: Source) -> Text:
    """The statements of a text. Raises InputError at the first mistake."""
    return _Parser(source).text()


class _Parser(ExpressionParser):
    def text(self) -> Text:
        title = self.title()
        statements: list[Statement] = []
        while self.next.sort is not Lexeme.END:
            statements += self.statement()
        if not statements:
            hint = "a model is made of definitions (let) and checks (acyclic, irreflexive, empty)"
            raise InputError(f"{self.source.name}: has no statement", hint=hint)
        return Text(title, tuple(statements))

    def title(self) -> str:
        """`"words"`, `PTX` or `PTX "words"` before the first statement; a bare word stands on a line of its own."""
        word, second = self.next, self.after()
        if word.sort is Lexeme.STRING:
            return self.take().text
        if (
            word.sort is not Lexeme.NAME
            or self.overrides()
            or not (second.first or second.sort in (Lexeme.STRING, Lexeme.WORD))
        ):
            return ""
        self.take()
        return self.take().text if second.sort is Lexeme.STRING else word.text

    def statement(self) -> list[Statement]:
        token = self.next
        if token.sort is Lexeme.MARK and token.text == "~" and self.after().text in CHECK_WORDS:
            return [self.check()]
        if self.overrides():
            self.take()
            return [self.let(override=True)]
        if token.sort is not Lexeme.WORD or token.text not in STATEMENT_WORDS:
            self.no_statement(token)
        if token.text == "let":
            return [self.let()]
        if token.text == "include":
            self.take()
            if self.next.sort is not Lexeme.STRING:
                self.fail('expected a file name in quotes after `include`, as in `include "sc.cat"`')
            path = self.take()
            return [Include(path.text, self.span(path))]
        if token.text == "show":
            return self.show()
        if token.text == "unshow":
            self.take()
            names = self.separated("a name to hide")
            return [Unshow(name.text, self.span(name)) for name in names]
        return [self.check()]

    def overrides(self) -> bool:
        """Does `override let` come next? The word is a name anywhere else."""
        after = self.after()
        return self.next.sort is Lexeme.NAME and self.next.text == OVERRIDE and after.text == "let"

    def let(self, *, override: bool = False) -> Let:
        start = self.tokens[self.index - 1].start if override else self.next.start
        self.take()
        recursive = self.accept("rec")
        if override and recursive:
            self.fail("`override let` takes no `rec`: whether a definition is recursive is for the file that has it")
        bindings = self.bindings("let rec" if recursive else "let")
        for binding in bindings:
            if recursive and binding.parameters is not None:
                hint = "only relations and sets can be least fixpoints"
                raise InputError(f"function `{binding.name}` cannot be recursive", binding.span, hint)
        if self.at("when"):
            self.no_statement(self.next)
        doc = self.doc(start)
        self.accept("in")  # herd allows it after a statement, where it changes nothing
        return Let(bindings, recursive, doc, override)

    def show(self) -> list[Statement]:
        self.take()
        shown: list[Statement] = []
        while True:
            start = self.next.start
            body = self.expression()
            if self.accept("as"):
                shown.append(Show(body, self.name("a name after `as`").text, True))
            elif isinstance(body, Ref):
                shown.append(Show(body, body.name, False))
            else:
                raise InputError("an expression that is shown needs a name", self.since(start), "show … as name")
            if not self.accept(","):
                return shown

    def check(self) -> Test:
        start = self.next.start
        flag = self.accept("flag")
        negated = self.accept("~")
        if not self.at(*CHECK_WORDS):
            near = nearest(self.next.text, CHECK_WORDS) if self.next.text else None
            hint = f"did you mean `{near}`?" if near else None
            self.fail(f"expected acyclic, irreflexive or empty, found {describe(self.next)}", hint=hint)
        test = self.take().text
        body = self.expression()
        name = self.name("a name after `as`").text if self.accept("as") else None
        return Test(test, body, name, negated, flag, self.doc(start), self.since(start))

    def doc(self, start: int) -> str:
        """The comments that end on the line above a statement (or, without any, the one that ends its last line)."""
        text, end = self.source.text, self.tokens[self.index - 1].end
        found: list[str] = []
        here = bisect_left(self.comment_starts, start) - 1
        while here >= 0 and self.comments[here].first and not _parted(text[self.comments[here].end : start]):
            start = self.comments[here].start
            found.insert(0, self.comments[here].text)
            here -= 1
        if not any(found):
            here = bisect_left(self.comment_starts, end)
            if here < len(self.comments) and not text[end : self.comments[here].start].strip(" \t"):
                found = [self.comments[here].text]
        return " ".join(part for part in found if part)


def _parted(gap: str) -> bool:
    """Does more than a line break stand between two pieces of text?"""
    return bool(gap.strip()) or gap.count("\n") > 1
