"""Read cat expressions, and the bindings `name = expression` that stand in statements and expressions alike.

In: Source. Out: tree.Term. Settled here: herd's operators and their strength, and the message for every mistake.

Operators, loosest first: `|` and `;` (grouping to the right), `\\` (to the left), `&` (to the right), `*` between two
operands (cartesian product), prefix `~`, postfix `+ * ? ^-1`, application. A `*` is a product when an operand
follows and a closure otherwise. The parser is written by hand, not generated: the messages below need to know what
was being read, and importing a generator alone takes as long as a model may take to load.
"""

from __future__ import annotations

from typing import NoReturn

from memmodel.cat.lexer import CHECK_WORDS, STATEMENT_WORDS, UNSUPPORTED, CatToken, Lexeme, tokenize
from memmodel.cat.tree import Affix, Application, Binding, Infix, Local, Nothing, Ref, Term
from memmodel.errors import InputError, nearest
from memmodel.source import Source, Span

MAX_DEPTH = 150
"""Operators and brackets inside one another. The longest published definition needs about 20."""

INFIX: dict[str, tuple[int, bool]] = {"|": (1, True), ";": (2, True), "\\": (3, False), "&": (4, True), "*": (5, False)}
"""Binding strength of each infix operator, and whether it groups to the right."""

_CLOSER = {"(": ")", "[": "]", "{": "}"}


class ExpressionParser:
    """A position in the tokens of one text, and the methods that read expressions from there."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens, self.comments = tokenize(source)
        self.comment_starts = [comment.start for comment in self.comments]
        self.index = 0
        self.depth = 0

    # ---- tokens --------------------------------------------------------------------------------------------------

    @property
    def next(self) -> CatToken:
        return self.tokens[self.index]

    def after(self) -> CatToken:
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def take(self) -> CatToken:
        token = self.tokens[self.index]
        if token.sort is not Lexeme.END:
            self.index += 1
        return token

    def at(self, *texts: str) -> bool:
        return self.next.text in texts and self.next.sort in (Lexeme.WORD, Lexeme.MARK)

    def accept(self, text: str) -> bool:
        if self.at(text):
            self.index += 1
            return True
        return False

    def span(self, token: CatToken) -> Span:
        return Span(self.source, token.start, token.end)

    def since(self, start: int) -> Span:
        """From an offset to the end of the last token taken."""
        return Span(self.source, start, max(start, self.tokens[self.index - 1].end))

    def fail(self, message: str, token: CatToken | None = None, hint: str | None = None) -> NoReturn:
        raise InputError(message, self.span(token or self.next), hint)

    def name(self, what: str) -> CatToken:
        token = self.next
        if token.sort is Lexeme.WORD:
            self.fail(f"expected {what}, found the keyword `{token.text}`")
        if token.sort is not Lexeme.NAME or token.text == "_":
            self.fail(f"expected {what}, found {describe(token)}")
        return self.take()

    def no_statement(self, token: CatToken) -> NoReturn:
        """Explain a token at which no statement begins."""
        if token.text in UNSUPPORTED and token.sort is Lexeme.WORD:
            self.fail(f"`{token.text}` is not supported", token, UNSUPPORTED[token.text])
        if token.text in (")", "]", "}"):
            self.fail(f"`{token.text}` closes nothing", token)
        if token.sort is Lexeme.NAME and self.after().text == "=":
            self.fail("a definition begins with `let`", token, f"let {token.text} = …")
        if token.sort is Lexeme.NAME and token.first:
            near = nearest(token.text, STATEMENT_WORDS)
            hint = f"did you mean `{near}`?" if near else f"one of: {', '.join(STATEMENT_WORDS)}"
            self.fail(f"unknown statement `{token.text}`", token, hint)
        if self.index and (token.sort is Lexeme.NAME or token.text in ("[", "{", "0", "~")):
            self.fail(f"an operator is missing before `{token.text}`", token, "one of | ; & \\ *")
        if token.sort is Lexeme.STRING and self.index:
            self.fail("only a title and a file name are strings", token)
        self.fail(f"expected a statement, found {describe(token)}", token, f"one of: {', '.join(STATEMENT_WORDS)}")

    def bindings(self, word: str) -> tuple[Binding, ...]:
        found = [self.binding(word)]
        while self.accept("and"):
            found.append(self.binding("and"))
        return tuple(found)

    def binding(self, word: str) -> Binding:
        if self.at("(") or self.next.text == "_":
            self.fail("patterns are not supported", hint="define one name at a time")
        if self.next.sort is not Lexeme.NAME:
            self.fail(f"`{word}` needs a name, found {describe(self.next)}", hint=f"{word} name = …")
        name = self.take()
        parameters: list[CatToken] | None = None
        if self.at("("):
            opening = self.take()
            parameters = [] if self.at(")") else self.separated("a parameter")
            self.close(opening)
        elif self.next.sort is Lexeme.NAME:
            parameters = [self.name("a parameter")]
        if not self.accept("="):
            hint = f"{word} {name.text} = …"
            self.fail(f"missing `=` in `{word} {name.text}`, found {describe(self.next)}", hint=hint)
        seen = [token.text for token in parameters or ()]
        for number, token in enumerate(parameters or ()):
            if token.text in seen[:number]:
                self.fail(f"parameter `{token.text}` appears twice", token)
        return Binding(name.text, None if parameters is None else tuple(seen), self.expression(), self.span(name))

    def separated(self, what: str) -> list[CatToken]:
        names = [self.name(what)]
        while self.accept(","):
            names.append(self.name(what))
        return names

    # ---- expressions ---------------------------------------------------------------------------------------------

    def expression(self, floor: int = 1) -> Term:
        self.deeper(self.next)
        start = self.next.start
        left = self.operand()
        chain = 0
        while self.next.sort is Lexeme.MARK and self.next.text in INFIX and INFIX[self.next.text][0] >= floor:
            strength, rightward = INFIX[self.next.text]
            mark = self.take()
            if not rightward:  # a chain that groups to the left is as deep as it is long
                chain += 1
                self.deeper(mark)
            right = self.expression(strength if rightward else strength + 1)
            left = Infix(mark.text, left, right, self.since(start), self.span(mark))
        self.depth -= 1 + chain
        return left

    def operand(self) -> Term:
        """Prefix, primary and postfix operators."""
        token = self.next
        if self.at("~"):
            self.take()
            self.deeper(token)
            inner = self.operand()
            self.depth -= 1
            return Affix("~", inner, self.since(token.start))
        term = self.primary()
        levels = 0
        while self.next.sort is Lexeme.MARK and self.next.text in "+*?^":
            if self.at("*") and self.begins_operand(self.index + 1):
                break
            levels += 1
            self.deeper(token)
            op = self.take().text
            if op == "^":
                op = self.power()
            elif op == "+" and self.begins_operand(self.index) and not self.next.first:
                self.fail("`+` is the transitive closure and stands last", self.tokens[self.index - 1], "union is `|`")
            term = Affix(op, term, self.since(token.start))
        self.depth -= levels
        return term

    def deeper(self, token: CatToken) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"expression nested deeper than {MAX_DEPTH} operators", token, "name a part of it with `let`")

    def power(self) -> str:
        """What follows `^`."""
        if self.accept("-1"):
            return "^-1"
        if self.at("+", "*", "?"):
            return self.take().text
        self.fail(f"expected `-1` after `^`, found {describe(self.next)}", hint="the converse of r is r^-1")

    def begins_operand(self, index: int) -> bool:
        token = self.tokens[index]
        if token.sort is Lexeme.MARK:
            # `~` begins an operand, except where it begins the next check
            return token.text in ("(", "[", "{", "0") or (
                token.text == "~" and self.tokens[index + 1].text not in CHECK_WORDS
            )
        return token.sort is Lexeme.NAME or token.text == "begin"

    def primary(self) -> Term:
        token = self.take()
        if token.sort is Lexeme.NAME:
            return self.applied(Ref(token.text, self.span(token)))
        if token.sort is Lexeme.MARK:
            if token.text == "0":
                return Nothing(self.span(token))
            if token.text == "{":
                if not self.accept("}"):
                    self.fail("only `{}`, the empty set, may be written in braces", token)
                return Nothing(self.since(token.start))
            if token.text == "(":
                inner = self.expression()
                self.close(token)
                return inner
            if token.text == "[":
                inner = self.expression()
                self.close(token)
                return Affix("[]", inner, self.since(token.start))
        if token.text == "begin" and token.sort is Lexeme.WORD:
            inner = self.expression()
            if not self.accept("end"):
                self.fail("`begin` is never closed", token, "close it with `end`")
            return inner
        before = self.tokens[self.index - 2].text
        if token.text == "let" and token.sort is Lexeme.WORD and before in ("(", "[", "=", "begin", "in"):
            return self.local(token)
        if token.text in UNSUPPORTED and token.sort is Lexeme.WORD:
            self.no_statement(token)
        self.fail(f"expected a set or a relation, found {describe(token)}", token)

    def local(self, token: CatToken) -> Term:
        """`let … in body`, its `let` already taken."""
        if self.at("rec"):
            self.fail("`let rec` inside an expression is not supported", hint="move it before the statement")
        bindings = self.bindings("let")
        if not self.accept("in"):
            self.fail("a `let` inside an expression needs `in`", token, "let name = … in …")
        body = self.expression()
        return Local(bindings, body, self.since(token.start))

    def applied(self, head: Ref) -> Term:
        """`f(x, y)`, or `f x` on one line."""
        token = self.next
        if self.at("("):
            self.take()
            arguments = [self.expression()]
            while self.accept(","):
                arguments.append(self.expression())
            self.close(token)
        elif not token.first and (token.sort is Lexeme.NAME or self.at("[", "{", "0")):
            self.take()
            if token.sort is Lexeme.NAME:
                arguments = [Ref(token.text, self.span(token))]
            else:
                self.index -= 1
                arguments = [self.primary()]
        else:
            return head
        return Application(head, tuple(arguments), self.since(head.span.start))

    def close(self, opening: CatToken) -> None:
        """Take the bracket that closes `opening`."""
        wanted, token = _CLOSER[opening.text], self.next
        if self.accept(wanted):
            return
        if token.sort in (Lexeme.END, Lexeme.WORD) or token.text in (")", "]", "}"):
            hint = f"`{wanted}` is missing before {describe(token)} at {self.span(token)}"
            self.fail(f"`{opening.text}` is never closed", opening, hint)
        if token.text == ",":
            self.fail("a list in parentheses is only for the arguments of a function", token)
        self.no_statement(token)


def describe(token: CatToken) -> str:
    """A token in the words of a message."""
    if token.sort is Lexeme.END:
        return "the end of the file"
    if token.sort is Lexeme.STRING:
        return "a string"
    return f"`{token.text}`"
