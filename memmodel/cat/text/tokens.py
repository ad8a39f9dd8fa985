"""A position in the tokens of one text, and the complaints about what stands there.

In: Source. Out: `TokenReader`, on which the parsers of expressions and statements build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from memmodel.cat.text.lexer import STATEMENT_WORDS, CatToken, Lexeme, tokenize
from memmodel.errors import InputError, suggestion
from memmodel.source import Source, Span

Read = TypeVar("Read")

MAX_DEPTH = 150
"""Operators and brackets inside one another. The longest published definition needs about 20."""

_CLOSER = {"(": ")", "[": "]", "{": "}"}


class TokenReader:
    """Takes tokens one after the other. `stops`: names that end an expression where it stands, such as `then`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens, self.comments = tokenize(source)
        self.comment_starts = [comment.start for comment in self.comments]
        self.index = 0
        self.depth = 0
        self.stops: tuple[str, ...] = ()

    @property
    def next(self) -> CatToken:
        return self.tokens[self.index]

    def after(self, more: int = 1) -> CatToken:
        return self.tokens[min(self.index + more, len(self.tokens) - 1)]

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

    def word(self, text: str, token: CatToken, form: str) -> None:
        """Take a word that is a keyword only here. `token`: where the construct begins."""
        if self.next.text != text or self.next.sort not in (Lexeme.WORD, Lexeme.NAME):
            self.fail(f"`{token.text}` needs `{text}`, found {describe(self.next)}", token, form)
        self.take()

    @contextmanager
    def stopping(self, *words: str) -> Iterator[None]:
        """Expressions end before these names."""
        before, self.stops = self.stops, (*self.stops, *words)
        yield
        self.stops = before

    def stops_at(self, token: CatToken) -> bool:
        return token.text in self.stops

    def span(self, token: CatToken) -> Span:
        return Span(self.source, token.start, token.end)

    def since(self, start: int) -> Span:
        """From an offset to the end of the last token taken."""
        return Span(self.source, start, max(start, self.tokens[self.index - 1].end))

    def deeper(self, token: CatToken) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"expression nested deeper than {MAX_DEPTH} operators", token, "name a part of it with `let`")

    def name(self, what: str) -> CatToken:
        token = self.next
        if token.sort is Lexeme.WORD:
            self.fail(f"expected {what}, found the keyword `{token.text}`")
        if token.sort is not Lexeme.NAME or token.text == "_":
            self.fail(f"expected {what}, found {describe(token)}")
        return self.take()

    def separated(self, read: Callable[[], Read], mark: str = ",") -> list[Read]:
        """What `read` reads here, and after each mark that follows."""
        parts = [read()]
        while self.accept(mark):
            parts.append(read())
        return parts

    def expect(self, text: str, message: str, token: CatToken | None = None, hint: str | None = None) -> None:
        """Take a keyword or operator. Raises InputError with the message, at `token` or here, if it is another one."""
        if not self.accept(text):
            self.fail(message, token, hint)

    def close(self, opening: CatToken) -> None:
        """Take the bracket that closes `opening`."""
        wanted, token = _CLOSER[opening.text], self.next
        if self.accept(wanted):
            return
        if token.sort in (Lexeme.END, Lexeme.WORD) or token.text in (")", "]", "}"):
            hint = f"`{wanted}` is missing before {describe(token)} at {self.span(token)}"
            self.fail(f"`{opening.text}` is never closed", opening, hint)
        if token.text == ",":
            self.fail("a list stands in parentheses", token, "(a, b)")
        self.no_statement(token)

    # ---- complaints ----------------------------------------------------------------------------------------------

    def fail(self, message: str, token: CatToken | None = None, hint: str | None = None) -> NoReturn:
        raise InputError(message, self.span(token or self.next), hint)

    def no_statement(self, token: CatToken) -> NoReturn:
        """Explain a token at which no statement begins."""
        if token.text in (")", "]", "}", "end") and token.sort is not Lexeme.NAME:
            self.fail(f"`{token.text}` closes nothing", token)
        if token.sort is Lexeme.NAME and self.after().text == "=":
            self.fail("a definition begins with `let`", token, f"let {token.text} = …")
        if token.sort is Lexeme.NAME and token.first:
            hint = suggestion(token.text, STATEMENT_WORDS, "`{}`") or f"one of: {', '.join(STATEMENT_WORDS)}"
            self.fail(f"unknown statement `{token.text}`", token, hint)
        if self.index and (token.sort in (Lexeme.NAME, Lexeme.TAG) or token.text in ("[", "{", "0", "~")):
            self.fail(f"an operator is missing before `{token.text}`", token, "one of | ; & \\ *")
        if token.sort is Lexeme.STRING and self.index:
            self.fail("only a title, a file name and a variant are strings", token)
        self.fail(f"expected a statement, found {describe(token)}", token, f"one of: {', '.join(STATEMENT_WORDS)}")


def describe(token: CatToken) -> str:
    """A token in the words of a message."""
    if token.sort is Lexeme.END:
        return "the end of the file"
    if token.sort is Lexeme.STRING:
        return "a string"
    if token.sort is Lexeme.TAG:
        return f"`'{token.text}`"
    return f"`{token.text}`"
