"""The cat language: text to Model.

In: a shipped name, a path or a Source. Out: Model, every name resolved and every expression with its kind.
"""

from memmodel.base.resources import is_shipped
from memmodel.cat.load import allow_includes, configure, load_model, named_by, parse_model, shipped_models
from memmodel.cat.names import BASE_NAMES, BaseName

__all__ = [
    "BASE_NAMES",
    "BaseName",
    "allow_includes",
    "configure",
    "is_shipped",
    "load_model",
    "named_by",
    "parse_model",
    "shipped_models",
]
