"""Read cat expressions, and the bindings `name = expression` that stand in statements and expressions alike.

In: Source. Out: tree.Term. Settled here: herd's operators and their strength, and the message for every mistake.

Operators, loosest first: `|`, `++` and `;` (grouping to the right), `\\` (to the left), `&` (to the right), `*` between
two operands (cartesian product), prefix `~`, postfix `+ * ? ^-1`, application. A `*` is a product when an operand
follows and a closure otherwise. `let`, `fun`, `try`, `if` and `match` extend as far as they can, and stand where an
expression begins. The parser is written by hand, not generated: the messages below need to know what was being read,
and importing a generator alone takes as long as a model may take to load.
"""

from __future__ import annotations

from memmodel.cat.text.lexer import CHECK_WORDS, CatToken, Lexeme
from memmodel.cat.text.tokens import TokenReader, describe
from memmodel.cat.text.tree import (
    Affix,
    Application,
    Binding,
    Collection,
    Comparison,
    Condition,
    Conditional,
    Infix,
    Lambda,
    Local,
    Logical,
    MatchSet,
    MatchTag,
    Nothing,
    Ref,
    Tag,
    Term,
    Try,
    Tuple,
    VariantIs,
)

INFIX: dict[str, tuple[int, bool]] = {
    "|": (1, True),
    "++": (2, True),
    ";": (3, True),
    "\\": (4, False),
    "&": (5, True),
    "*": (6, False),
}
"""Binding strength of each infix operator, and whether it groups to the right."""

_POSTFIX = ("+", "*", "?", "^", "-1")
_CONSTRUCTS = ("let", "fun", "try", "if", "match")


class ExpressionParser(TokenReader):
    """Methods that read expressions at the position of a TokenReader."""

    # ---- bindings ------------------------------------------------------------------------------------------------

    def bindings(self, word: str) -> tuple[Binding, ...]:
        bindings = [self.binding(word)]
        while self.accept("and"):
            bindings.append(self.binding("and"))
        return tuple(bindings)

    def binding(self, word: str) -> Binding:
        start = self.next
        if self.at("("):
            names = self.formals()
            return self.pattern(word, names, start)
        if self.next.sort is not Lexeme.NAME:
            self.fail(f"`{word}` needs a name, found {describe(self.next)}", hint=f"{word} name = …")
        name = self.take()
        if self.accept(","):
            return self.pattern(word, (name.text, *self.separated(self.parameter)), start)
        parameters: tuple[str, ...] | None = None
        if self.at("("):
            parameters = self.formals()
        elif self.next.sort is Lexeme.NAME:
            parameters = (self.parameter(),)
        self.equals(word, name.text)
        return Binding(name.text, parameters, self.expression(), self.span(name))

    def pattern(self, word: str, names: tuple[str, ...], start: CatToken) -> Binding:
        """`(a, b) = body`, its names already taken."""
        span = self.since(start.start)
        self.equals(word, "(…)")
        if len(names) == 1:
            return Binding(names[0], None, self.expression(), span)
        return Binding("", None, self.expression(), span, names)

    def equals(self, word: str, name: str) -> None:
        message = f"missing `=` in `{word} {name}`, found {describe(self.next)}"
        self.expect("=", message, hint=f"{word} {name} = …")

    def parameter(self) -> str:
        if self.next.sort is Lexeme.NAME and self.next.text == "_":
            return self.take().text
        return self.name("a parameter").text

    def formals(self) -> tuple[str, ...]:
        """`(x, _, y)` or `()`."""
        opening = self.take()
        names: list[str] = []
        while not self.at(")"):
            token = self.next
            names.append(self.parameter())
            if token.text != "_" and token.text in names[:-1]:
                self.fail(f"parameter `{token.text}` appears twice", token)
            if not self.accept(","):
                break
        self.close(opening)
        return tuple(names)

    # ---- expressions ---------------------------------------------------------------------------------------------

    def expression(self, *, tuples: bool = True) -> Term:
        """An expression; `a, b` is a tuple where a comma does not mean something else."""
        token = self.next
        if token.sort is Lexeme.WORD and token.text in _CONSTRUCTS:
            self.deeper(token)
            term = self.construct(self.take())
            self.depth -= 1
            return term
        left = self.operators()
        if not tuples or not self.accept(","):
            return left
        return Tuple((left, *self.separated(self.operators)), self.since(token.start))

    def construct(self, token: CatToken) -> Term:
        """`let`, `fun`, `try`, `if` or `match`, already taken."""
        match token.text:
            case "let":
                return self.local(token)
            case "fun":
                parameters = self.formals() if self.at("(") else (self.parameter(),)
                self.expect("->", f"`fun` needs `->`, found {describe(self.next)}", hint="fun x -> …")
                return Lambda(parameters, self.expression(), self.since(token.start))
            case "try":
                first = self.expression()
                self.expect("with", "`try` needs `with`", token, "try … with …")
                return Try(first, self.expression(), self.since(token.start))
            case "if":
                condition = self.condition()
                self.word("then", token, "if … then … else …")
                with self.stopping("else"):
                    first = self.expression()
                self.word("else", token, "if … then … else …")
                return Conditional(condition, first, self.expression(), self.since(token.start))
            case _:
                return self.match(token)

    def local(self, token: CatToken) -> Term:
        """`let … in body`, its `let` already taken."""
        recursive = self.accept("rec")
        bindings = self.bindings("let rec" if recursive else "let")
        self.expect("in", "a `let` inside an expression needs `in`", token, "let name = … in …")
        body = self.expression()
        return Local(bindings, body, recursive, self.since(token.start))

    def match(self, token: CatToken) -> Term:
        """`match` on a tag or on a set, its `match` already taken."""
        subject = self.expression()
        self.expect("with", "`match` needs `with`", token, "match … with || … end")
        tags: list[tuple[str | None, Term]] = []
        empty: Term | None = None
        other: tuple[str, str, str | None, Term] | None = None
        self.accept("||")
        while True:
            if self.next.sort is Lexeme.TAG or (self.next.text == "_" and self.after().text == "->"):
                clause = self.take()
                self.arrow()
                tags.append((clause.text if clause.sort is Lexeme.TAG else None, self.expression()))
            elif self.at("{"):
                self.close(self.take())
                self.arrow()
                empty = self.expression()
            else:
                other = self.element()
            if not self.accept("||"):
                break
        self.word("end", token, "match … with || … end")
        span = self.since(token.start)
        if tags and empty is None and other is None:
            return MatchTag(subject, tuple(tags), span)
        if empty is None or other is None or tags:
            self.fail("`match` needs clauses for tags, or one for {} and one for `element ++ rest`", token)
        element, rest, before, body = other
        return MatchSet(subject, empty, element, rest, body, before, span)

    def element(self) -> tuple[str, str, str | None, Term]:
        """`element ++ rest -> …`, perhaps with `before |` in front."""
        before = None
        first = self.parameter()
        if self.accept("|"):
            before, first = first, self.parameter()
        message = f"expected a clause of `match`, found {describe(self.next)}"
        self.expect("++", message, hint="|| element ++ rest -> …")
        rest = self.parameter()
        self.arrow()
        return first, rest, before, self.expression()

    def arrow(self) -> None:
        self.expect("->", f"a clause needs `->`, found {describe(self.next)}")

    # ---- conditions ----------------------------------------------------------------------------------------------

    def condition(self) -> Condition:
        """What stands between `if` and `then`."""
        if self.begins_variant():
            return self.alternatives()
        start = self.next.start
        with self.stopping("subset", "then"):
            left = self.operators()
        token = self.next
        if not (token.text in ("=", "in") or (token.sort is Lexeme.NAME and token.text == "subset")):
            self.fail("`if` needs a condition", token, 'a = b, a subset b, a in b, or the name of a variant: "name"')
        self.take()
        with self.stopping("then"):
            right = self.operators()
        return Comparison(token.text, left, right, self.since(start))

    def begins_variant(self) -> bool:
        token, after = self.next, self.after()
        if token.sort is Lexeme.STRING:
            return True
        if token.sort is Lexeme.NAME:
            return token.text in ("not", "variant") and (after.sort is Lexeme.STRING or after.text in ("not", "("))
        return token.text == "(" and (after.sort is Lexeme.STRING or after.text == "not")

    def alternatives(self) -> Condition:
        condition, start = self.both(), self.next.start
        while self.accept("||"):
            condition = Logical("||", (condition, self.both()), self.since(start))
        return condition

    def both(self) -> Condition:
        condition, start = self.variant(), self.next.start
        while self.at("&") and self.after().text == "&":
            self.take(), self.take()
            condition = Logical("&&", (condition, self.variant()), self.since(start))
        return condition

    def variant(self) -> Condition:
        token = self.take()
        self.deeper(token)
        condition: Condition
        if token.sort is Lexeme.STRING:
            condition = VariantIs(token.text, self.span(token))
        elif token.text == "variant":
            condition = self.variant()
        elif token.text == "not":
            condition = Logical("not", (self.variant(),), self.since(token.start))
        elif token.text == "(":
            condition = self.alternatives()
            self.close(token)
        else:
            self.fail(f"expected the name of a variant, found {describe(token)}", token, '"name"')
        self.depth -= 1
        return condition

    # ---- operators -----------------------------------------------------------------------------------------------

    def operators(self, floor: int = 1) -> Term:
        """An expression without `let` and its like, whose operators bind at least so strongly."""
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
            right = self.operators(strength if rightward else strength + 1)
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
        while self.next.sort is Lexeme.MARK and self.next.text in _POSTFIX:
            if self.at("*") and self.begins_operand(self.index + 1):
                break
            levels += 1
            self.deeper(token)
            op = self.take().text
            if op == "^":
                op = self.power()
            elif op == "+" and self.begins_operand(self.index) and not self.next.first:
                self.fail("`+` is the transitive closure and stands last", self.tokens[self.index - 1], "union is `|`")
            term = Affix("^-1" if op == "-1" else op, term, self.since(token.start))
        self.depth -= levels
        return term

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
        if token.sort is Lexeme.NAME:
            return not self.stops_at(token)
        return token.sort is Lexeme.TAG or token.text == "begin"

    def primary(self) -> Term:
        token = self.take()
        if token.sort is Lexeme.NAME and not self.stops_at(token):
            return self.applied(Ref(token.text, self.span(token)))
        if token.sort is Lexeme.TAG:
            return Tag(token.text, self.span(token))
        if token.sort is Lexeme.MARK:
            if token.text == "0":
                return Nothing(self.span(token))
            if token.text == "{":
                return self.collection(token)
            if token.text == "(":
                return self.applied(self.parenthesis(token))
            if token.text == "[":
                inner = self.expression(tuples=False)
                self.close(token)
                return Affix("[]", inner, self.since(token.start))
        if token.text == "begin" and token.sort is Lexeme.WORD:
            inner = self.expression()
            self.expect("end", "`begin` is never closed", token, "close it with `end`")
            return inner
        if token.sort is Lexeme.WORD and token.text in _CONSTRUCTS[1:]:
            self.fail(f"`{token.text}` inside an expression stands in parentheses", token, f"({token.text} …)")
        self.fail(f"expected a set or a relation, found {describe(token)}", token)

    def parenthesis(self, opening: CatToken) -> Term:
        """What stands between parentheses; the first is taken."""
        if self.accept(")"):
            return Tuple((), self.since(opening.start))
        self.deeper(opening)
        inner = self.expression()
        self.depth -= 1
        self.close(opening)
        return inner

    def collection(self, opening: CatToken) -> Term:
        """`{}` or `{a, b}`; the brace is taken."""
        if self.accept("}"):
            return Nothing(self.since(opening.start))
        items = self.separated(self.operators)
        self.close(opening)
        return Collection(tuple(items), self.since(opening.start))

    def applied(self, head: Term) -> Term:
        """`f(x, y)`, or `f x` on one line; both may be repeated."""
        chain = 0
        while True:
            token = self.next
            parenthesis = self.at("(") and (isinstance(head, Ref | Application) or not token.first)
            if not parenthesis and (token.first or not self.begins_argument(token)):
                self.depth -= chain
                return head
            chain += 1
            self.deeper(token)
            arguments: tuple[Term, ...]
            if parenthesis:
                inner = self.parenthesis(self.take())
                arguments = inner.items if isinstance(inner, Tuple) and inner.items else (inner,)
            elif token.sort is Lexeme.NAME:
                self.take()
                arguments = (Ref(token.text, self.span(token)),)
            else:
                arguments = (self.primary(),)
            head = Application(head, arguments, self.since(head.span.start))

    def begins_argument(self, token: CatToken) -> bool:
        if token.sort is Lexeme.NAME:
            return not self.stops_at(token)
        return token.sort is Lexeme.TAG or self.at("[", "{", "0", "begin")
