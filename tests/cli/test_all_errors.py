"""All errors of a file come at once, each at its place, and none that goes with the repair of another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memmodel import api
from memmodel.cat import load_model
from memmodel.errors import InputError
from memmodel.kernel.launch import read_launch
from memmodel.lsp.diagnostics import of_text
from memmodel.lsp.document import Document
from memmodel.ptx.module.reader import read_module
from memmodel.recovery.every_error import Passage, every_error
from memmodel.source import Source

BLOCKS = """PTX blocks
Expect=ptx-9.4:«nevr»
.global .u32 x = 0;
«.globl» .u32 y = 0;
thread P0 @ cta 0, gpu 0 {
  st.weak.global.u32 [x], 1;
  st.«relese».gpu.global.u32 [y], 1;
}
thread P1 @ cta 1, gpu 0 {
  ld.acquire.«gpo».global.u32 r0, [y];
  @r0 ld.weak.global.u32 r1, [«z»];
  add.u32 r2, r0, r1;
}
exists (P1:r0 == 1)
exists («P2»:r0 == 1)
"""
TABLE = """PTX table
{ x=0; int «z»=q; y=0; }
P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
st.weak x, 1 | ld.«acquir».gpu r0, y ;
st.«relese».gpu y, 1 | ld.weak r1, x ;
~exists (P1:r0=1 /\\ P1:r1=0)
"""
MODEL = """"model"
let a = «nosuch» | rf
let b = a ; co
acyclic b | «as» first
acyclic po | «other» as second
let c = «(»rf
empty c as third
"""
MODULE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<4>;
  .reg «.b33» %q<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1, 5«;»
  mov.u32 «%r9», 1;
  mov.u32 %q1, 1;
  bra «nowhere»;
  { add.u32 %r1 «%r2», 4; }
  ret;
}
.visible .entry m()
{
  mov.u32 «%z», 1;
}
"""
LAUNCH = """{
  "grid": [«0», 1, 1],
  "block": [32, 1, 1],
  "params": [
    {"type": "ptr", "address": 4096, "bytes": «-4», «"inti"»: "zero"},
    {"type": "ptr", "address": 4096, "bytes": 4}
  ],
  «"colour"»: 3
}
"""


def places(text: str) -> tuple[str, list[int]]:
    """A text without its marks, and the offsets of those that open."""
    starts: list[int] = []
    plain = ""
    for character in text:
        if character == "«":
            starts.append(len(plain))
        elif character != "»":
            plain += character
    return plain, starts


KINDS: list[tuple[str, str, Callable[[Path], object]]] = [
    ("blocks.litmus", BLOCKS, api.read_test),
    ("table.litmus", TABLE, api.read_test),
    ("own.cat", MODEL, load_model),
    ("module.ptx", MODULE, read_module),
    ("launch.json", LAUNCH, read_launch),
]


@pytest.mark.parametrize(("name", "marked", "read"), KINDS, ids=[name for name, *_ in KINDS])
def test_every_error_is_shown_at_its_place(
    tmp_path: Path, name: str, marked: str, read: Callable[[Path], object]
) -> None:
    text, starts = places(marked)
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read(path)
    errors = (caught.value, *caught.value.more)
    assert [error.span.start for error in errors if error.span is not None] == starts
    assert all(error.span is not None and error.span.line_text in text for error in errors)
    assert caught.value.render().count("^\n") + caught.value.render().endswith("^") == len(starts)
    if name.endswith(".json"):
        return
    document = Document(path.as_uri(), text, name.partition(".")[2])
    shown = of_text(document)
    assert [each["range"] for each in shown] == [document.at(error.span) for error in errors]


def test_no_more_than_ten_errors_are_shown() -> None:
    body = "".join(f"  mov.u32 r{n}, %nosuch.x;\n  bad{n}.u32 r0, 1;\n" for n in range(12))
    text = f"PTX many\n.global .u32 x;\nthread P0 @ cta 0, gpu 0 {{\n{body}}}\nexists (x == 0)\n"
    with pytest.raises(InputError) as caught:
        api.read_test(text)
    assert len(caught.value.more) == 9
    assert caught.value.render().endswith("only the first 10 errors are shown")


def test_an_error_of_an_included_file_has_the_others_of_that_file(tmp_path: Path) -> None:
    (tmp_path / "part.cat").write_text("let a = nosuch\nlet b = other | a\n")
    (tmp_path / "whole.cat").write_text('"whole"\ninclude "part.cat"\nacyclic third as x\n')
    with pytest.raises(InputError) as caught:
        load_model(tmp_path / "whole.cat")
    errors = (caught.value, *caught.value.more)
    assert [str(error.span).rpartition("/")[2] for error in errors] == ["part.cat:1:9", "part.cat:2:9"]


@pytest.mark.parametrize(
    "text",
    ["PTX t\n" + "\n" * 900_000, f"PTX t\n.globl .u32 x{' ' * 900_000}= 1;\n", "PTX t\n.globl " + "a" * 900_000],
    ids=["lines", "blanks", "word"],
)
def test_a_long_text_is_read_in_linear_time(text: str) -> None:
    with pytest.raises(InputError):
        api.read_test(text)


def test_a_very_long_text_is_not_read_again() -> None:
    source, readings = Source("long.cat", "," * 600_000), list[Source]()
    first = InputError("expected a statement", source.span(0, 1))
    assert every_error(first, source, readings.append, lambda text, span: Passage(span)).more == ()
    assert readings == []
