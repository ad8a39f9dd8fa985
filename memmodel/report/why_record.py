"""Explanations as JSON values.

In: the records of this room. Out: dictionaries with the names of their fields as keys, in that order.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum

from memmodel.answer import Witness
from memmodel.report.record import execution
from memmodel.why.records import Explanation


def explained(told: Explanation) -> dict[str, object]:
    """An explanation as one JSON object."""
    return {one.name: _plain(getattr(told, one.name)) for one in fields(told)}


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Witness):
        return execution(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value
