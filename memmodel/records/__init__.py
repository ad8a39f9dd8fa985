"""The JSON that memmodel writes, as pydantic models. Nothing here is loaded until JSON or a schema is asked for."""
