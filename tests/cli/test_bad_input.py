"""What a person may feed the program by mistake or malice: a message with its place, exit code 2, in bounded time.

Each test runs the program as a person does, less the process. Every command that takes a file is tried on every file.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator

import pytest
from helpers.patience import processor_seconds

from memmodel.cli import main
from memmodel.source import MAX_BYTES


@pytest.fixture(autouse=True)
def in_bounded_time() -> Iterator[None]:
    with processor_seconds(30):
        yield


GOOD = """PTX MP
"Message passing."
Expect=ptx-9.4:never
{ x = 0; y = 0; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0       ;
 st.weak x, 1        | ld.acquire.gpu r0, y ;
 st.release.gpu y, 1 | ld.weak r1, x        ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""

Ran = tuple[int, str, str]


@pytest.fixture
def run(capsys) -> Callable[..., Ran]:
    """Run the program: its exit code, stdout and stderr."""

    def call(*argv: object) -> Ran:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in argv])
        out, err = capsys.readouterr()
        assert "Traceback" not in err and "internal error" not in err + out
        assert len(err) < 5_000
        return int(left.value.code or 0), out, err

    return call


def points_at(err: str, file: str, line: int, text: str) -> bool:
    """Does a message give `file:line:column`, and a caret under this text in the line it shows?"""
    place = re.search(rf"{re.escape(file)}:{line}:(\d+): error: ", err)
    shown = re.search(r"^  \d+ \| (.*)\n +\| ( *)(\^+)$", err, re.MULTILINE)
    if place is None or shown is None:
        return False
    start = len(shown[2])
    return shown[1][start : start + len(shown[3])] == text


# ---- a mistake in a litmus file ------------------------------------------------------------------------------------

MISTAKES = {
    "unknown instruction": ("st.weak x, 1 ", "store.weak x, 1 ", 6, "store.weak"),
    "illegal qualifier": ("ld.acquire.gpu", "ld.release.gpu", 6, "release"),
    "scope missing": ("ld.acquire.gpu r0", "ld.acquire r0", 6, None),
    "scope on a weak access": ("st.weak x, 1", "st.weak.gpu x, 1", 6, None),
    "unknown thread in the condition": ("P1:r1 == 0", "P7:r1 == 0", 8, None),
    "unknown label": ("ld.weak r1, x        ", "goto NOWHERE         ", 7, "NOWHERE"),
    "condition cut off": ("P1:r1 == 0)", "P1:r1 ==", 8, None),
    "expectation that is not a word": ("ptx-9.4:never", "ptx-9.4:nver", 3, "nver"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_pointed_at(name: str, run, tmp_path) -> None:
    before, after, line, text = MISTAKES[name]
    assert before in GOOD
    path = tmp_path / "mistake.litmus"
    path.write_text(GOOD.replace(before, after))
    code, out, err = run("check", path)
    assert (code, out) == (2, "")
    assert f"{path}:{line}:" in err and ": error: " in err and "^" in err
    if text is not None:
        assert points_at(err, str(path), line, text), err


def test_an_undeclared_location_is_pointed_at(run, tmp_path) -> None:
    """The column layout only warns, since published tables leave declarations out; blocks are PTX."""
    path = tmp_path / "mistake.litmus"
    path.write_text(
        "PTX M\n.global .u32 x;\nthread P0 @ cta 0, gpu 0 {\n    st.global.u32 [zz], 1;\n}\nexists (x == 1)\n"
    )
    code, _, err = run("check", path)
    assert code == 2
    assert points_at(err, str(path), 4, "zz"), err


@pytest.mark.parametrize("length", [1, 10, 40, 80, 140, 200, len(GOOD) - 3])
def test_a_truncated_file_is_refused(length: int, run, tmp_path) -> None:
    path = tmp_path / "cut.litmus"
    path.write_text(GOOD[:length])
    code, _, err = run("check", path)
    assert code == 2
    assert f"{path}:" in err


# ---- files that are no tests -----------------------------------------------------------------------------------------

DEEP = 100_000
HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "blank": b"\n\n   \n",
    "binary": bytes(random.Random(1).randrange(256) for _ in range(4096)),
    "elf": b"\x7fELF\x02\x01\x01" + bytes(200),
    "latin": "PTX caf\xe9\n{ x = 0; }\n".encode("latin-1"),
    "2 MB": GOOD.encode() + b"(* " + b"x" * 2_000_000 + b" *)",
    "one long line": b"PTX long " + b"y" * (MAX_BYTES - 100),
    "nested condition": GOOD.replace("(P1:r0 == 1", "(" * DEEP + "P1:r0 == 1").encode(),
    "nested negation": GOOD.replace("exists (", "exists (" + "not " * DEEP).encode(),
    "unfinished comment": b"(*" * DEEP + GOOD.encode(),
    "huge number": GOOD.replace("x, 1", "x, " + "9" * 5000).encode(),
    "huge array": b"PTX big\n.global .u32 x[99999999999999];\nthread P0 @ cta 0, gpu 0 { ret; }\nexists (true)\n",
    "many threads": b"PTX wide\n{ x = 0; }\n"
    + b" | ".join(b"P%d@cta 0,gpu 0" % i for i in range(5000))
    + b" ;\nexists (true)\n",
    "a model": b'"Mine"\nlet a = po\nacyclic a as A\n',
}


@pytest.mark.share(2)
@pytest.mark.parametrize("command", ["check", "outcomes", "draw", "fmt"])
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_test_is_refused(name: str, command: str, run, tmp_path) -> None:
    path = tmp_path / "hostile.litmus"
    path.write_bytes(HOSTILE[name])
    code, out, err = run(command, path, *(["-o", tmp_path / "out.svg"] if command == "draw" else []))
    assert code in (2, 3) and (code == 2 or name in ("many threads", "huge number"))
    assert out == "" or code == 3
    assert str(path) in err + out
    assert "error" in err or code == 3


@pytest.mark.parametrize(("name", "place"), [("2 MB", "9:"), ("latin", "1:8: ")])
def test_what_is_not_read_as_text_is_pointed_at(name: str, place: str, run, tmp_path) -> None:
    """Where the file has all the bytes that are read, and the first one that is not UTF-8."""
    path = tmp_path / "hostile.litmus"
    path.write_bytes(HOSTILE[name])
    assert f"{path}:{place}" in run("check", path)[2]


def test_a_directory_is_no_file(run, tmp_path) -> None:
    code, _, err = run("check", tmp_path)
    assert code == 2
    assert f"{tmp_path}: no .litmus file here or below" in err
    code, _, err = run("outcomes", tmp_path)
    assert code == 2
    assert f"{tmp_path}: is a directory, not a file" in err


def test_a_missing_file_is_an_error(run, tmp_path) -> None:
    code, _, err = run("check", tmp_path / "none.litmus")
    assert code == 2
    assert "cannot be read" in err


def test_an_unreadable_file_is_an_error(run, tmp_path) -> None:
    path = tmp_path / "secret.litmus"
    path.write_text(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    code, _, err = run("check", path)
    assert code == 2
    assert "cannot be read" in err


# ---- models ------------------------------------------------------------------------------------------------------

MODELS = {
    "kind error": ("let a = po\nacyclic a\nlet b = W ; po\n", 3, "W"),
    "unknown name": ("let strong = W\nlet a = [strnog] ; po\n", 2, "strnog"),
    "syntax": ("let a = po |\nacyclic a\n", 2, None),
    "wrong number of arguments": ("let f(x) = x\nlet a = f(po, po)\n", 2, None),
    "recursion under a complement": ("let rec a = po | ~a\nacyclic a\n", 1, None),
    "missing include": ('include "none.cat"\nacyclic po\n', 1, None),
}


@pytest.fixture
def mp(tmp_path):
    path = tmp_path / "MP.litmus"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_a_mistake_in_a_model_is_pointed_at(name: str, run, tmp_path, mp) -> None:
    text, line, word = MODELS[name]
    model = tmp_path / "my.cat"
    model.write_text(text)
    for command in ("check", "suite", "outcomes"):
        code, out, err = run(command, mp, "--model", model)
        assert (code, out) == (2, "")
        assert f"{model}:{line}:" in err and "^" in err
        if word is not None:
            assert points_at(err, str(model), line, word), err


def test_a_model_that_does_not_exist(run, mp) -> None:
    code, _, err = run("check", mp, "--model", "ptx-9.5")
    assert code == 2
    assert "no model `ptx-9.5`" in err and "did you mean ptx-9.4?" in err


def test_a_cyclic_include(run, tmp_path, mp) -> None:
    (tmp_path / "a.cat").write_text('include "b.cat"\n')
    (tmp_path / "b.cat").write_text('acyclic po\ninclude "a.cat"\n')
    code, _, err = run("check", mp, "--model", tmp_path / "a.cat")
    assert code == 2
    assert "includes itself" in err and "b.cat:2:" in err


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "text",
    [
        "let a = " + "(" * DEEP + "po" + ")" * DEEP + "\n",
        "let a = " + "~" * DEEP + "po\n",
        "let a = po" + "^-1" * DEEP + "\n",
        "let a = " + " | ".join(["po"] * DEEP) + "\n",
        "let f0(x) = x ; x\n"
        + "".join(f"let f{i}(x) = f{i - 1}(f{i - 1}(x))\n" for i in range(1, 40))
        + "let a = f39(po)\n",
        "(*" * DEEP,
        "".join(f"let a{i} = po\n" for i in range(20_000)),
        '"',
        "",
    ],
    ids=["parentheses", "complements", "inverses", "union", "functions", "comments", "definitions", "string", "empty"],
)
def test_a_hostile_model_is_refused(text: str, run, tmp_path, mp) -> None:
    model = tmp_path / "my.cat"
    model.write_text(text)
    code, out, err = run("check", mp, "--model", model)
    assert (code, out) == (2, "")
    assert f"{model}" in err and "error: " in err


def test_a_binary_model_is_refused(run, tmp_path, mp) -> None:
    model = tmp_path / "my.cat"
    model.write_bytes(HOSTILE["elf"])
    code, _, err = run("check", mp, "--model", model)
    assert code == 2
    assert "not a text file" in err


# ---- a suite ---------------------------------------------------------------------------------------------------


def test_bad_files_are_counted_and_the_rest_still_runs(run, tmp_path) -> None:
    (tmp_path / "good.litmus").write_text(GOOD)
    (tmp_path / "other.litmus").write_text(GOOD.replace("PTX MP", "PTX other"))
    for number, data in enumerate(HOSTILE.values()):
        (tmp_path / f"bad{number}.litmus").write_bytes(data)
    code, out, _ = run("suite", tmp_path, "--model", "ptx-9.4")
    assert code == 2
    last = out.splitlines()[-1]
    assert last.startswith(f"{2 + len(HOSTILE)} tests") and "2 as expected" in last
    bad = re.search(r"(\d+) bad, (\d+) undecided", last)
    assert bad is not None and int(bad[1]) + int(bad[2]) == len(HOSTILE)


@pytest.mark.parametrize("option", ["--mutate", "--annotate"])
@pytest.mark.parametrize(
    "other", [("--cta", "0"), ("--readings",), ("--any-grid",), ("--sarif", "out"), ("--unwritten",)]
)
def test_an_option_that_a_question_about_mutants_does_not_hear_is_refused(option: str, other, run) -> None:
    code, _, err = run("kernel", "k.ptx", option, *other)
    assert code == 2 and "judged by one run of all CTAs" in err
