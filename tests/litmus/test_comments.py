"""What `memmodel fmt` does with the comments of a test, and with an instruction that is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.places import ROOT

from memmodel.cli import main
from memmodel.errors import InputError
from memmodel.library import format, parse
from memmodel.litmus.lexer import comments
from memmodel.source import Source

LITMUS = ROOT / "litmus"
SOME = [path for path in sorted(LITMUS.rglob("*.litmus"))[::60] if "//" not in path.read_text()]

BLOCKS = """// licence
PTX c  // the name
"a sentence"  // about it
// before the expectation
Expect=ptx-9.4:sometimes  // why

/* several
   lines */
.global .u32 x = 0;  /* x */  // the data

(* nested (* here *) *)
thread P0 @ cta 0, gpu 0 {  // first
    // store
    st.relaxed.gpu.u32 [x], 1;  // one
    // at the end
}

// second
thread P1 @ cta 1, gpu 0 {
L:  // label
    ld.relaxed.gpu.u32 %r1, [x];
}  // closed

// the question
exists (P1:%r1 == 1)
// the end
"""
COLUMNS = """(* herd
   says *)
PTX c
{
x = 0;  (* init *)
// end of init
}
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;  // threads
 // first row
 st.weak x, 1   | ld.weak r0, x  ;  // one
// after all
exists (P1:r0 == 1)
"""


def words(text: str) -> list[str]:
    return [one.text.rstrip() for one in comments(Source("<text>", text))]


@pytest.mark.parametrize("text", [BLOCKS, COLUMNS], ids=["blocks", "columns"])
def test_a_canonical_text_keeps_its_comments_where_they_are(text: str) -> None:
    assert format(text) == text
    crowded = (
        text.replace("    //", "//").replace("  //", " //").replace("relaxed.gpu.u32 [x], 1", "relaxed.gpu.u32 [ x ],1")
    )
    assert format(crowded) == text


def test_a_comment_inside_an_instruction_goes_to_its_end() -> None:
    text = BLOCKS.replace("[x], 1;  // one", "[x],  // where\n      1; /* what */ // one")
    assert "[x], 1;  // where\n    /* what */\n    // one\n" in format(text)


@pytest.mark.parametrize("layout", ["blocks", "columns"])
@pytest.mark.parametrize("path", SOME, ids=lambda path: path.stem)
def test_no_comment_is_lost_in_either_layout(path: Path, layout: str) -> None:
    lines = path.read_text().splitlines()
    text = "".join(f"// above {i}\n{line}  // end {i}\n/* after\n {i} */\n" for i, line in enumerate(lines))
    if any(line.count('"') == 1 for line in lines):
        pytest.skip("a sentence of several lines")
    try:
        plain = format(path, layout)
    except InputError:
        return  # what the other layout cannot say
    kept = format(text, layout)
    assert sorted(words(kept)) == sorted(words(text))
    assert parse(kept) == parse(plain)
    assert format(kept) == kept


def test_braces_of_another_layout_are_others() -> None:
    """Those of a table are around its first values, those of blocks around threads."""
    assert "\n\n// end of init\nthread P0" in format(COLUMNS, "blocks")
    assert "}\n (* nested (* here *) *)\n // at the end\n // second\n P0@cta" in format(BLOCKS, "columns")


def test_fmt_in_place_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "c.litmus"
    file.write_text(BLOCKS.replace("\n\n", "\n"))
    with pytest.raises(SystemExit) as left:
        main(["fmt", "-i", str(file)])
    assert (left.value.code, file.read_text()) == (0, BLOCKS)


@pytest.mark.parametrize("layout", [None, "blocks", "columns"])
def test_an_instruction_that_is_none_is_refused_with_its_place(layout: str | None) -> None:
    with pytest.raises(InputError, match="unknown instruction 'frob'") as caught:
        format(COLUMNS.replace("st.weak x, 1  ", "frob x, 1     "), layout)
    assert caught.value.span is not None and caught.value.span.text == "frob"


def test_fmt_keeps_the_line_ends_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "t.litmus"
    old = "PTX  t\n\nthread P0 @ cta 0, gpu 0 {\n  mov.u32 %r0, 1;\n}\n\nexists true\n"
    file.write_bytes(b"\xef\xbb\xbf" + old.replace("\n", "\r\n").encode())
    with pytest.raises(SystemExit) as done:
        main(["fmt", "-i", str(file)])
    assert not done.value.code
    data = file.read_bytes()
    assert data.startswith(b"\xef\xbb\xbfPTX t\r\n") and b"\n    mov.u32" in data
    assert data.count(b"\n") == data.count(b"\r\n")
