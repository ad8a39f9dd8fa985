"""What an object shows of itself at a prompt: one line that says what matters.

In: the kind of object and what to say of it. Out: `<Kind what; more>`, at most WIDTH characters.
"""

from __future__ import annotations

WIDTH = 120


def shown(kind: str, *parts: str) -> str:
    """The parts that are not empty, joined by semicolons and cut to a line."""
    text = " ".join("; ".join(part for part in parts if part).split())
    line = f"<{kind} {text}>" if text else f"<{kind}>"
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 5]} ...>"


def count(number: int, noun: str) -> str:
    """`1 event`, `2 events`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
