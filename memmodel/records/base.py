"""What all records have in common.

In: nothing. Out: `JsonRecord`. Settled here: a record has exactly its keys, in the order of its fields, and is frozen.
It can be filled from an object that has a member for each field; so are the records inside it.
"""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict


class JsonRecord(BaseModel):
    """One JSON object. New keys come last; none is renamed or removed within a major version (docs/json.md)."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, from_attributes=True, json_schema_serialization_defaults_required=True
    )

    @classmethod
    def of(cls, source: object) -> Self:
        """The record of an object that has a member for each field."""
        return cls.model_validate(source)

    def json_values(self) -> dict[str, object]:
        """The object as JSON values."""
        return self.model_dump(mode="json")
