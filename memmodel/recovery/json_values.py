"""The values of a JSON text that a person may have written.

In: a name, and text or bytes. Out: values, or an InputError that says what is wrong, and where.
"""

from __future__ import annotations

import json
import re
from typing import Any

from memmodel.errors import InputError
from memmodel.source import Source

DEPTH = 200
"""Where the message about a text that is nested too deeply points: to the bracket with so many around it. Every version
of Python follows more."""

_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]')
_DIGITS = re.compile(r"\d+")


def json_values(name: str, text: str | bytes, refused: str = "not JSON") -> Any:
    """The values in a text. `refused`: how a message begins that says why there are none. Raises InputError."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{refused}: {error.msg}", Source(name, error.doc).span(error.pos, error.pos + 1)) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: {refused}: byte {error.start} is not {error.encoding}") from error
    except RecursionError as error:
        source = _source(name, text)
        place = _deep(source.text)
        raise InputError(f"{refused}: nested too deeply", source.span(place, place + 1)) from error
    except ValueError as error:  # Python reads no number of so many digits
        source = _source(name, text)
        longest = max(_DIGITS.finditer(source.text), key=lambda digits: digits.end() - digits.start())
        raise InputError(f"{refused}: a number of too many digits", source.span(*longest.span())) from error


def _source(name: str, text: str | bytes) -> Source:
    return Source(name, text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass"))


def _deep(text: str) -> int:
    """The place of the first bracket with DEPTH brackets around it. The text before it is JSON, which has been read."""
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket[0], 0)
        if depth > DEPTH:
            return bracket.start()
    return 0  # the stack of the caller was deep
