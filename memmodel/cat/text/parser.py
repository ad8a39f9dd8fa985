"""Read a cat text: its title and its statements.

In: Source. Out: tree.Text. Settled here: syntax only; names and kinds are `cat.resolve`'s. The comment above a
statement, or else the one that ends its last line, becomes its `doc`. `undefined_unless` and `assert` are flags.
"""

from __future__ import annotations

from bisect import bisect_left

from memmodel.cat.interpret.expressions import ExpressionParser
from memmodel.cat.text.lexer import CHECK_WORDS, CatToken, Lexeme
from memmodel.cat.text.tokens import describe
from memmodel.cat.text.tree import (
    Branch,
    CallStatement,
    Enum,
    Forall,
    Include,
    Let,
    MatchStatement,
    OwnDependencies,
    Procedure,
    Ref,
    Show,
    Statement,
    Term,
    Test,
    Text,
    Tuple,
    Unshow,
    With,
)
from memmodel.errors import InputError, suggestion
from memmodel.source import Source

OVERRIDE = "override"

_HEADING_OPTIONS = ("withinit", "withoutinit", "withco", "withoutco", "withsc", "withoutsc")
"""Words after the title that ask herd for initial writes and coherence, which are always given here."""

_CHECKS = ("flag", "undefined_unless", *CHECK_WORDS)


def parse(source: Source) -> Text:
    """The statements of a text. Raises InputError at the first mistake."""
    return _Parser(source).text()


class _Parser(ExpressionParser):
    def text(self) -> Text:
        title, heading = self.title()
        if self.next.sort is Lexeme.END:
            hint = "a model is made of definitions (let) and checks (acyclic, irreflexive, empty)"
            raise InputError("the model has no statement", self.source.span(0, 0), hint, show_line=False)
        statements = self.statements()
        if self.index < len(self.tokens) - 1:
            self.no_statement(self.next)
        return Text(title, heading, statements)

    def title(self) -> tuple[str, str]:
        """`"words"`, `PTX`, `X86 TSO` or `PTX "words"` before the first statement; and everything that it says.

        Bare words stand on a line of their own.
        """
        count = 0
        while self.tokens[count].sort is Lexeme.NAME and (count == 0 or not self.tokens[count].first):
            count += 1
        follows = self.tokens[count]
        alone = follows.first or follows.sort is Lexeme.STRING or (count == 1 and follows.sort is Lexeme.WORD)
        if count and (not alone or self.overrides() or self.ignored() or self.checks()):
            return "", ""
        words = [self.take().text for _ in range(count)]
        if self.next.sort is Lexeme.STRING:
            text = self.take().text
            while self.next.text in _HEADING_OPTIONS:
                self.take()
            return text, " ".join((*words, text))
        return " ".join(words), " ".join(words)

    # ---- statements ----------------------------------------------------------------------------------------------

    def statements(self, *ends: str) -> tuple[Statement, ...]:
        """Statements up to one of these words, or to the end of the file."""
        statements: list[Statement] = []
        while self.next.sort is not Lexeme.END and not self.ended(ends):
            statements += self.statement()
        return tuple(statements)

    def ended(self, ends: tuple[str, ...]) -> bool:
        return self.next.text in ends and self.next.sort in (Lexeme.WORD, Lexeme.NAME, Lexeme.MARK)

    def statement(self) -> list[Statement]:
        token = self.next
        if self.overrides():
            self.take()
            return [self.let(override=True)]
        if self.at(*_CHECKS) or self.checks():
            return [self.check()]
        if self.ignored():
            return self.ignore()
        if token.sort is not Lexeme.WORD:
            self.no_statement(token)
        self.deeper(token)
        statements = self.worded(token)
        self.depth -= 1
        return statements

    def worded(self, token: CatToken) -> list[Statement]:
        """A statement that begins with a keyword."""
        match token.text:
            case "let":
                return [self.let()]
            case "show":
                return self.show()
            case "include":
                self.take()
                if self.next.sort is not Lexeme.STRING:
                    self.fail('expected a file name in quotes after `include`, as in `include "sc.cat"`')
                path = self.take()
                return [Include(path.text, self.span(path))]
            case "unshow":
                self.take()
                names = self.separated(lambda: self.name("a name to hide"))
                return [Unshow(name.text, self.span(name)) for name in names]
            case "with":
                self.take()
                name = self.name("a name after `with`")
                self.word("from", token, "with name from set")
                return [With(name.text, self.expression(), self.since(token.start))]
            case "procedure":
                return [self.procedure(self.take())]
            case "call":
                return [self.call(self.take())]
            case "forall":
                return [self.forall(self.take())]
            case "if":
                return [self.branch(self.take())]
            case "match":
                return [self.cases(self.take())]
            case "enum":
                return [self.enum(self.take())]
            case _:
                self.no_statement(token)

    def overrides(self) -> bool:
        """True if `override let` comes next; the word is a name anywhere else."""
        after = self.after()
        return self.next.sort is Lexeme.NAME and self.next.text == OVERRIDE and after.text == "let"

    def checks(self) -> bool:
        """True if a check begins here with `~` or with `assert`."""
        token, after = self.next, self.after()
        if token.text == "~" and token.sort is Lexeme.MARK:
            return after.text in CHECK_WORDS
        return token.text == "assert" and token.sort is Lexeme.NAME and after.text in ("~", *CHECK_WORDS)

    def ignored(self) -> bool:
        """True if a statement begins here that a model does without."""
        token, after = self.next, self.after()
        if token.sort is Lexeme.WORD:
            return token.text in ("instructions", "debug")
        if token.sort is not Lexeme.NAME:
            return False
        if token.text == "default":
            return after.sort is Lexeme.NAME and self.after(2).text == "["
        return (token.text == "catdep" and (after.first or after.sort is not Lexeme.MARK)) or (
            token.text == "cut" and after.sort is Lexeme.NAME and not after.first
        )

    def ignore(self) -> list[Statement]:
        """What says which annotations instructions may have, and what concerns other tools."""
        token = self.take()
        if token.text == "catdep":
            return [OwnDependencies(self.span(token))]
        if token.text == "debug":
            self.expression()
            return []
        self.name(f"a name after `{token.text}`")
        if token.text != "cut":
            opening = self.next
            if not self.accept("["):
                self.fail(f"`{token.text}` needs a list of tags", token, f"{token.text} R[{{'once, 'acquire}}]")
            while not self.at("]"):
                self.operators()
                if not self.accept(","):
                    break
            self.close(opening)
        return []

    def let(self, *, override: bool = False) -> Let:
        start = self.tokens[self.index - 1].start if override else self.next.start
        self.take()
        recursive = self.accept("rec")
        if override and recursive:
            self.fail("`override let` takes no `rec`: whether a definition is recursive is for the file that has it")
        bindings = self.bindings("let rec" if recursive else "let")
        when = None
        if self.at("when"):
            word = self.take()
            if not recursive:
                self.fail("`when` belongs to `let rec`", word, "write the check after the definition")
            when = self.check()
        doc = self.doc(start)
        self.accept("in")  # herd allows it after a statement, where it changes nothing
        return Let(bindings, recursive, doc, override, when)

    def show(self) -> list[Statement]:
        self.take()
        return [*self.separated(self.shown)]

    def shown(self) -> Show:
        """One expression that pictures draw, with its name."""
        start = self.next.start
        body = self.operators()
        if self.accept("as"):
            return Show(body, self.name("a name after `as`").text, True)
        if isinstance(body, Ref):
            return Show(body, body.name, False)
        raise InputError("an expression that is shown needs a name", self.since(start), "show … as name")

    def check(self) -> Test:
        """A check; `undefined_unless` and `assert` report where what follows them does not hold."""
        start = self.next.start
        how = self.take().text if self.next.text in ("flag", "undefined_unless", "assert") else ""
        negated = self.accept("~") is not (how in ("undefined_unless", "assert"))
        if not self.at(*CHECK_WORDS):
            hint = suggestion(self.next.text, CHECK_WORDS, "`{}`") if self.next.text else None
            self.fail(f"expected acyclic, irreflexive or empty, found {describe(self.next)}", hint=hint)
        test = self.take().text
        body = self.expression(tuples=False)
        name = self.name("a name after `as`").text if self.accept("as") else None
        if how in ("undefined_unless", "assert"):
            about = name or (body.name if isinstance(body, Ref) else " ".join(body.span.text.split()))
            name = f"{'undefined' if how == 'undefined_unless' else 'assert'}-{about}"
        return Test(test, body, name, negated, bool(how), self.doc(start), self.since(start))

    # ---- statements that hold statements -------------------------------------------------------------------------

    def procedure(self, token: CatToken) -> Procedure:
        self.accept("rec")
        name = self.name("a name after `procedure`")
        parameters = self.formals() if self.at("(") else (self.parameter(),)
        self.equals("procedure", f"{name.text}(…)")
        statements = self.statements("end")
        self.word("end", token, "procedure name(…) = … end")
        return Procedure(name.text, parameters, statements, self.span(name))

    def call(self, token: CatToken) -> CallStatement:
        name = self.name("a name after `call`")
        arguments: tuple[Term, ...] = (self.primary(),)
        if isinstance(arguments[0], Tuple) and arguments[0].items:
            arguments = arguments[0].items
        alias = self.name("a name after `as`").text if self.accept("as") else None
        return CallStatement(Ref(name.text, self.span(name)), arguments, alias, self.since(token.start))

    def forall(self, token: CatToken) -> Forall:
        form = "forall name in set do … end"
        name = self.name("a name after `forall`")
        self.expect("in", "`forall` needs `in`", token, form)
        with self.stopping("do"):
            over = self.expression()
        self.word("do", token, form)
        statements = self.statements("end")
        self.word("end", token, form)
        return Forall(name.text, over, statements, self.span(token))

    def branch(self, token: CatToken) -> Branch:
        form = 'if "name" … else … end'
        if not self.begins_variant():
            self.fail("this `if` needs the name of a variant", token, form)
        condition = self.alternatives()
        first = self.statements("else", "end")
        second: tuple[Statement, ...] = ()
        if self.next.text == "else":
            self.take()
            second = self.statements("end")
        self.word("end", token, form)
        return Branch(condition, first, second)

    def cases(self, token: CatToken) -> MatchStatement:
        form = "match tag with || 'name -> … end"
        subject = self.expression()
        self.expect("with", "`match` needs `with`", token, form)
        self.accept("||")
        clauses = self.separated(self.clause, "||")
        self.word("end", token, form)
        return MatchStatement(subject, tuple(clauses), self.span(token))

    def clause(self) -> tuple[str | None, tuple[Statement, ...]]:
        """`'tag -> statements`, or `_ -> statements` for any other tag."""
        token = self.take()
        if token.sort is not Lexeme.TAG and token.text != "_":
            self.fail(f"expected a tag, found {describe(token)}", token, "|| 'name -> …")
        self.arrow()
        return token.text if token.sort is Lexeme.TAG else None, self.statements("||", "end")

    def enum(self, token: CatToken) -> Enum:
        name = self.name("a name after `enum`")
        self.equals("enum", name.text)
        self.accept("||")

        def tag() -> str:
            if self.next.sort is not Lexeme.TAG:
                self.fail(f"expected a tag, found {describe(self.next)}", hint=f"enum {name.text} = 'a || 'b")
            return self.take().text

        return Enum(name.text, tuple(self.separated(tag, "||")), self.since(token.start))

    # ---- comments ------------------------------------------------------------------------------------------------

    def doc(self, start: int) -> str:
        """The comments that end on the line above a statement (or, without any, the one that ends its last line)."""
        text, end = self.source.text, self.tokens[self.index - 1].end
        above: list[str] = []
        number = bisect_left(self.comment_starts, start) - 1
        while number >= 0 and self.comments[number].first and not _parted(text[self.comments[number].end : start]):
            start = self.comments[number].start
            above.insert(0, self.comments[number].text)
            number -= 1
        if any(above):
            return " ".join(part for part in above if part)
        behind = bisect_left(self.comment_starts, end)
        if behind < len(self.comments) and not text[end : self.comments[behind].start].strip(" \t"):
            return self.comments[behind].text
        return ""


def _parted(gap: str) -> bool:
    """True if more than a line break stands between two pieces of text."""
    return bool(gap.strip()) or gap.count("\n") > 1
