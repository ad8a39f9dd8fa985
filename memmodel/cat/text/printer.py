"""Write a cat expression as text: the fewest parentheses that read back as the same tree.

In: cat.syntax.Expr. Out: str. Reports use it to name a check that has no `as`, and to say what an axiom tests.
"""

from __future__ import annotations

from memmodel.cat.interpret.expressions import INFIX
from memmodel.cat.syntax import Binary, Empty, Expr, Name, Unary

_PREFIX = 1 + max(strength for strength, _ in INFIX.values())
_POSTFIX = _PREFIX + 1
_PRIMARY = _POSTFIX + 1


def show(expr: Expr) -> str:
    """One line of cat that parses to `expr`."""
    return _show(expr, 0)


def _show(expr: Expr, floor: int) -> str:
    text, strength = _parts(expr)
    return f"({text})" if strength < floor else text


def _parts(expr: Expr) -> tuple[str, int]:
    """The text, and how strongly its outermost operator binds."""
    match expr:
        case Name():
            return expr.name, _PRIMARY
        case Empty():
            return "0", _PRIMARY
        case Unary(op="[]"):
            return f"[{_show(expr.operand, 0)}]", _PRIMARY
        case Unary(op="domain" | "range"):
            return f"{expr.op}({_show(expr.operand, 0)})", _PRIMARY
        case Unary(op="~"):
            return f"~{_show(expr.operand, _PREFIX)}", _PREFIX
        case Unary():
            doubled = (
                expr.op == "+" and isinstance(expr.operand, Unary) and expr.operand.op == "+"
            )  # `++` is an operator
            return f"{_show(expr.operand, _PRIMARY if doubled else _POSTFIX)}{expr.op}", _POSTFIX
        case Binary():
            strength, rightward = INFIX[expr.op]
            left = _show(expr.left, strength + rightward)
            right = _show(expr.right, strength + (not rightward))
            gap = "" if expr.op == ";" else " "
            return f"{left}{gap}{expr.op} {right}", strength
