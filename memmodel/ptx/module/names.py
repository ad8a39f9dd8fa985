"""Names of C++ in a module: what a mangled one stands for.

In: a name. Out: its C++ form. The library of the C++ compiler takes it apart where there is one, else it stays.
"""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from typing import Any

LIBRARIES = ("libstdc++.so.6", "libc++.1.dylib", "libc++abi.so.1")
MANGLED = re.compile(r"_Z\w+")


@lru_cache(maxsize=1)
def _library() -> Any:
    for name in LIBRARIES:
        try:
            function = ctypes.CDLL(name).__cxa_demangle
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        return function
    return None


@lru_cache(maxsize=1 << 12)
def demangled(name: str) -> str:
    """`void scale<float>(float*, int)` for `_Z5scaleIfEvPT_i`; the name itself if it is not mangled C++."""
    library = _library() if MANGLED.fullmatch(name) else None
    if library is None:
        return name
    status = ctypes.c_int()
    pointer = library(name.encode(), None, None, ctypes.byref(status))
    if not pointer or status.value != 0:
        return name
    text = ctypes.string_at(pointer).decode("utf-8", "replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(pointer))
    return text


def without_parameters(name: str) -> str:
    """`scale<float>` for `void scale<float>(float*, int)`: neither result nor parameters."""
    text = demangled(name)
    depth, end, begin = 0, len(text), 0
    for at, char in enumerate(text):
        if char in "<([":
            if char == "(" and depth == 0 and at > 0 and not text.startswith("(anonymous namespace)", at):
                end = at
                break
            depth += 1
        elif char in ">)]":
            depth -= 1
        elif char == " " and depth == 0:
            begin = at + 1
    return text[begin:end]


def base_name(name: str) -> str:
    """`scale` for `void ns::scale<float>(float*, int)`."""
    text, depth, kept = without_parameters(name), 0, []
    for char in text:
        depth += (char == "<") - (char == ">")
        if depth == 0 and char != ">":
            kept.append(char)
    return "".join(kept).rsplit("::", 1)[-1]
