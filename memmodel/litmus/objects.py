"""Variables that are objects: an mbarrier that starts initialised, tensor maps, multimem addresses of other variables,
and where an alloc leaves the address of tensor memory.

In: Reader at `= mbarrier(2)`, `= tensormap(data, {8, 2}, {16, 4})`, `= {tensormap(a), tensormap(b)}`,
`= multimem(x, y)`, or `= alloc(acc)`. Out: the Variable with these fields. Settled here: the state space, size and type
that each kind of object has.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.errors import InputError, suggestion
from memmodel.litmus.lexer import Reader, listed
from memmodel.litmus.syntax import TensorView, Variable
from memmodel.memory.tensormap import MAX_DIMENSIONS, TENSORMAP_BYTES
from memmodel.ptx.lexer import shorten
from memmodel.ptx.vocabulary import MbarrierLayout, Space

_KINDS = ("mbarrier", "tensormap", "multimem", "alloc")


def read_object(reader: Reader, variable: Variable, *, counted: bool) -> Variable:
    """The rest of a declaration from its `=`; `counted`: it says how large it is. Raises InputError."""
    reader.expect("=", "`=`")
    if reader.accept("{"):
        views = reader.separated(lambda: _view(reader))
        reader.expect("}", "`,` or `}`")
        return _tensormaps(variable, tuple(views), counted)
    if reader.token.text == "tensormap":
        return _tensormaps(variable, (_view(reader),), counted)
    kind = reader.expect("name", listed(_KINDS))
    if kind.text not in _KINDS:
        hint = suggestion(kind.text, _KINDS) or "`= mbarrier(2)` or `= tensormap(data)`"
        raise InputError(f"`{shorten(kind.text)}` is not a kind of object", reader.span(kind), hint)
    reader.expect("(", "`(`")
    read = {"mbarrier": _mbarrier, "multimem": _multimem, "alloc": _allocates}[kind.text]
    initialised = read(reader, variable)
    reader.expect(")", "`)`")
    return initialised


def _mbarrier(reader: Reader, variable: Variable) -> Variable:
    if variable.space is not Space.SHARED or (variable.type is not None and variable.type.width != 64):
        hint = f"declare it `.shared .align 8 .b64 {variable.name}`"
        raise InputError("an mbarrier object is 8 bytes of shared memory", variable.span, hint)
    count, token = reader.count("the number of arrivals", MbarrierLayout.V0.max_arrivals)
    if count == 0:
        raise InputError("an mbarrier object expects at least one arrival", reader.span(token))
    return replace(variable, mbarrier=count)


def _multimem(reader: Reader, variable: Variable) -> Variable:
    """The names of the variables that a multimem address points to."""
    if variable.array or variable.space not in (Space.GLOBAL, Space.GENERIC):
        hint = f"declare it `.global {variable.name} = multimem(x, y)`"
        raise InputError("a multimem address is one name in global memory", variable.span, hint)
    names = reader.separated(lambda: reader.identifier("a variable").text)
    return replace(variable, multimem=tuple(names))


def _allocates(reader: Reader, variable: Variable) -> Variable:
    """The tensor memory whose address an alloc leaves in the variable."""
    word = variable.type is None or variable.type.width == 32
    if variable.space is not Space.SHARED or variable.array or not word:
        hint = f"declare it `.shared .b32 {variable.name} = alloc(acc)`"
        raise InputError("an alloc leaves an address in 4 bytes of shared memory", variable.span, hint)
    return replace(variable, allocates=reader.identifier("a .tensor variable").text)


def _view(reader: Reader) -> TensorView:
    """`tensormap(data, {8, 2}, {16, 4})`."""
    first = reader.expect("name", "tensormap")
    if first.text != "tensormap":
        raise InputError(f"`{shorten(first.text)}` is not a tensor map", reader.span(first), "`= {tensormap(data), …}`")
    reader.expect("(", "`(`")
    data = reader.identifier("the variable that the tensor map describes")
    box = _extent(reader, "box") if reader.accept(",") else ()
    shape = _extent(reader, "tensor") if reader.accept(",") else ()
    last = reader.expect(")", "`)`")
    span = reader.span(first, last)
    if shape and len(shape) != len(box):
        raise InputError(f"a box of {len(box)} dimensions in a tensor of {len(shape)}", span)
    if any(inner > outer for inner, outer in zip(box, shape, strict=False)):
        raise InputError("the box is larger than the tensor", span, "both count elements, innermost first")
    if len(box) > 1 and not shape:
        hint = "name its sizes after the box: `tensormap(data, {8, 2}, {16, 4})`"
        raise InputError("a box of several dimensions needs a tensor of as many", span, hint)
    return TensorView(data.text, box, shape, reader.span(data))


def _tensormaps(variable: Variable, views: tuple[TensorView, ...], counted: bool) -> Variable:
    """A variable that holds these maps, declared with their number or with their bytes."""
    if variable.space is Space.TENSOR:
        raise InputError("a tensor map is in .global, .const, .param or .shared memory", variable.span)
    size = TENSORMAP_BYTES * len(views)
    wrong = counted and variable.length not in (len(views), size)
    if wrong if variable.array else len(views) > 1:
        what = f"{len(views)} tensor maps are" if len(views) > 1 else "a tensor map is"
        raise InputError(f"{what} {size} bytes", variable.span, f"declare it `.b8 {variable.name}[{size}]`")
    return replace(variable, length=len(views), maps=views)


def _extent(reader: Reader, what: str) -> tuple[int, ...]:
    """`8` or `{8, 2}`, innermost dimension first."""
    if reader.accept("{") is None:
        return (_size(reader, what),)
    sizes = reader.separated(lambda: _size(reader, what))
    last = reader.expect("}", "`,` or `}`")
    if len(sizes) > MAX_DIMENSIONS:
        raise InputError(f"a tensor has at most {MAX_DIMENSIONS} dimensions", reader.span(last))
    return tuple(sizes)


def _size(reader: Reader, what: str) -> int:
    size, token = reader.count(f"a size of the {what}", 1 << 16)
    if size == 0:
        raise InputError(f"a size of the {what} is at least 1", reader.span(token))
    return size
