"""Mutations of everything that the program reads, and what has to hold of each: no traceback, an exit code that is
documented, an answer within its budget, engines that do not contradict each other.

    cd tests && python -m helpers.fuzz --count 20000 --seed 1 [--only KIND]

KIND is litmus, cat, csv, launch, ptx, arguments, commands or requests (to the language server). It prints every input
that breaks this, and exits with 1 if there is one. The same seed makes the same inputs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.kernel.samples import copy, kernel_text
from memmodel.base.resources import axioms_dir, suite_dir
from memmodel.cli import main

SECONDS = 1.0
LATE = 10.0
"""Seconds of the processor that one run may take beyond its budget, start-up and report included, on a slow machine."""

BUDGET = ("--timeout", str(SECONDS), "--budget", "100k", "--memory", "500M")
CODES = {0, 1, 2, 3}
KERNEL = kernel_text(copy())
LAUNCH = {
    "grid": [1, 1, 1],
    "block": [64, 1, 1],
    "params": [{"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536}],
}

HAND_OVER = json.dumps(
    {
        "name": "tile",
        "buffers": [{"name": "tile", "bytes": 16}],
        "agents": [
            {"name": "A", "accesses": [{"name": "fill", "kind": "copy-in", "buffer": "tile", "bytes": 16}]},
            {"name": "B", "accesses": [{"name": "use", "kind": "read", "buffer": "tile"}]},
        ],
        "hand_overs": [{"first": "fill", "then": "use"}],
    },
    indent=1,
)
"""Accesses and a hand-over as `sync` takes them."""


def _list(text: str) -> list[str]:
    return text.split()


NUMBERS = _list("""0 1 -1 2 15 16 31 32 64 255 4294967295 4294967296 -9223372036854775809 18446744073709551616
                   0x7fffffffffffffff 1e9 0b1 007""")
NUMBERS.append("9" * 400)
ODD = _list(r"""\ " ' (* *) // /* | ; { } ( ) [ ] @ % : ~ ^ & /\ \/""")
ODD += ["", "\x00", "\x1b[31m", "\u202e", "\u0085", "\ufeff", "\ud800", "\r", "\t", "é", "\U0001f600"]
TOKEN = re.compile(r"[A-Za-z_%.$][\w.:%$]*|0x[0-9a-fA-F]+|\d+|\s+|.", re.DOTALL)


OPTIONS = _list("""--model -m --engine --bound --budget --timeout --memory --json --junit -o --under --against
    --expected --ask --finding --layout --readings --help -j --strict-names --no-expect --entry --launch --max --search
    --target --allow-include""")


@dataclass(frozen=True)
class Input:
    """One mutated input: the kind, the files to write, the command line."""

    kind: str
    files: dict[str, str | bytes]
    argv: tuple[str, ...]


# ---- mutations -------------------------------------------------------------------------------------------------------


def mutated(text: str, words: list[str], roll: random.Random) -> str:
    """A few changes: of tokens mostly, of lines, of characters."""
    for _ in range(roll.choice((1, 1, 1, 2, 3, 6))):
        text = roll.choice((_token, _token, _token, _line, _character, _number))(text, words, roll)
    return text[:200_000]


def _token(text: str, words: list[str], roll: random.Random) -> str:
    tokens = TOKEN.findall(text)
    if not tokens:
        return roll.choice(words)
    at = roll.randrange(len(tokens))
    change = roll.randrange(5)
    if change == 0:
        del tokens[at]
    elif change == 1:
        tokens.insert(at, roll.choice(words))
    elif change == 2:
        tokens[at] = roll.choice(words)
    elif change == 3:
        other = roll.randrange(len(tokens))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    else:
        parts = tokens[at].split(".")
        roll.shuffle(parts)
        tokens[at] = ".".join(parts)
    return "".join(tokens)


def _line(text: str, words: list[str], roll: random.Random) -> str:
    lines = text.split("\n")
    at, other = roll.randrange(len(lines)), roll.randrange(len(lines))
    change = roll.randrange(4)
    if change == 0:
        del lines[at]
    elif change == 1:
        lines[at:at] = [lines[other]] * roll.choice((1, 1, 2, 8))
    elif change == 2:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines = lines[: at + 1]
    return "\n".join(lines)


def _character(text: str, words: list[str], roll: random.Random) -> str:
    at = roll.randrange(len(text) + 1)
    return text[:at] + roll.choice(ODD) * roll.choice((1, 1, 1, 3, 300)) + text[at + roll.randrange(3) :]


def _number(text: str, words: list[str], roll: random.Random) -> str:
    found = list(re.finditer(r"\d+", text))
    if not found:
        return text
    one = roll.choice(found)
    return text[: one.start()] + roll.choice(NUMBERS) + text[one.end() :]


def distorted(text: str, roll: random.Random) -> str | bytes:
    """A text as no editor leaves it: cut off, repeated, nested deeply, in another encoding, with NUL and the like."""
    at = roll.randrange(len(text) + 1)
    how = roll.randrange(9)
    if how == 0:
        return text[:at]
    if how == 1:
        return text * roll.choice((2, 20, 200))
    if how == 2:
        depth = roll.choice((10, 1_000, 50_000))
        opening, closing = roll.choice((("(", ")"), ("{", "}"), ("[", "]"), ("(* ", " *)"), ("~", "")))
        return text[:at] + opening * depth + closing * roll.choice((0, depth)) + text[at:]
    if how == 3:
        return text[:at] + roll.choice("\n \t;,") * roll.choice((1_000, 900_000)) + text[at:]
    if how == 4:
        return re.sub(r"\d+", lambda number: roll.choice((number[0], number[0], roll.choice(NUMBERS))), text)
    if how == 5:
        return text.encode(roll.choice(("utf-16", "utf-32", "utf-8-sig", "utf-7")))
    if how == 6:
        return (
            text[:at].encode()
            + bytes(roll.randrange(256) for _ in range(roll.choice((1, 8, 400))))
            + text[at:].encode()
        )
    if how == 7:
        return text.replace("\n", roll.choice(("\r\n", "\r", "\x0b", "\u2028")))
    return "".join(wide(letter) if "!" <= letter <= "~" and roll.random() < 0.02 else letter for letter in text)


def wide(letter: str) -> str:
    """The character of full width that looks like a letter."""
    return chr(0xFF01 + ord(letter) - 0x21)


# ---- inputs ----------------------------------------------------------------------------------------------------------


def _words(texts: list[str]) -> list[str]:
    return sorted({token for text in texts for token in TOKEN.findall(text) if not token.isspace()} | set(NUMBERS))


class Corpus:
    """What is mutated: shipped tests, small enough to be quick; shipped models; a kernel with its launch."""

    def __init__(self) -> None:
        paths = sorted(path for path in suite_dir().rglob("*.litmus") if path.stat().st_size < 1200)
        self.litmus = [path.read_text() for path in paths]
        self.cat = [path.read_text() for path in sorted(axioms_dir().rglob("*.cat")) if path.stat().st_size < 9000]
        self.litmus_words, self.cat_words = _words(self.litmus), _words(self.cat)
        self.ptx_words = _words([KERNEL])
        self.test = next(text for text, path in zip(self.litmus, paths, strict=True) if path.name == "MP.litmus")

    def make(self, kind: str, roll: random.Random) -> Input:
        """The input that comes next."""
        return getattr(self, f"_{kind}")(roll)

    def _litmus(self, roll: random.Random) -> Input:
        text = mutated(roll.choice(self.litmus), self.litmus_words, roll)
        command = roll.choice(("check", "check", "check", "check", "outcomes", "fmt", "ptx", "draw"))
        more = BUDGET if command in ("check", "outcomes", "draw") else ()
        more += ("-o", "x.svg") if command == "draw" else ()
        more += roll.choice(((), ("--layout", "blocks"), ("--layout", "columns"))) if command == "fmt" else ()
        return Input("litmus", {"t.litmus": text}, (command, "t.litmus", *more))

    def _cat(self, roll: random.Random) -> Input:
        text = mutated(roll.choice(self.cat), self.cat_words, roll)
        return Input("cat", {"t.litmus": self.test, "m.cat": text}, ("check", "t.litmus", "--model", "m.cat", *BUDGET))

    def _csv(self, roll: random.Random) -> Input:
        text = mutated("path,holds\na.litmus,1\nb.litmus,0\n", ["a.litmus", ",", "path", "holds", "../..", *ODD], roll)
        files = {"e.csv": text, "a.litmus": self.test, "b.litmus": self.test}
        return Input("csv", files, ("suite", ".", "--expected", "e.csv", *BUDGET))

    def _launch(self, roll: random.Random) -> Input:
        text = json.dumps(LAUNCH, indent=1)
        text = mutated(text, [*_words([text]), "null", "true", "{}", "[]", '"zero"', "1e400"], roll)
        return Input("launch", {"k.ptx": KERNEL, "l.json": text}, ("kernel", "k.ptx", "--launch", "l.json", *BUDGET))

    def _ptx(self, roll: random.Random) -> Input:
        text = mutated(KERNEL, self.ptx_words, roll)
        files = {"k.ptx": text, "l.json": json.dumps(LAUNCH)}
        return Input("ptx", files, ("kernel", "k.ptx", "--launch", "l.json", *BUDGET))

    def _commands(self, roll: random.Random) -> Input:
        """Every command that judges, on distorted and mutated inputs."""
        texts = {"t.litmus": roll.choice(self.litmus), "m.cat": roll.choice(self.cat), "k.ptx": KERNEL}
        texts |= {"l.json": json.dumps(LAUNCH, indent=1), "p.json": HAND_OVER}
        command = roll.choice(COMMANDS)
        named = [name for name in texts if name in command.split()] or ["t.litmus"]
        files: dict[str, str | bytes] = {**texts}
        spoilt = roll.choice(named)
        words = {"t.litmus": self.litmus_words, "m.cat": self.cat_words}.get(spoilt, self.ptx_words)
        files[spoilt] = distorted(texts[spoilt], roll) if roll.random() < 0.6 else mutated(texts[spoilt], words, roll)
        budget = BUDGET
        if "--size" in command:
            budget = ("--timeout", str(SECONDS), "--memory", "500M")
        elif command.startswith("mutate-model"):
            budget = BUDGET[:2]
        return Input("commands", files, (*command.split(), *budget))

    def _requests(self, roll: random.Random) -> Input:
        """A question of an editor about a text as somebody types it."""
        kind = roll.choice(("litmus", "litmus", "cat", "cat", "ptx"))
        text = {"litmus": roll.choice(self.litmus), "cat": roll.choice(self.cat), "ptx": KERNEL}[kind]
        words = {"litmus": self.litmus_words, "cat": self.cat_words, "ptx": self.ptx_words}[kind]
        changed = distorted(text, roll) if roll.random() < 0.3 else mutated(text, words, roll)
        place = roll.randrange(-1, 60), roll.randrange(-1, 90)
        return Input("requests", {f"t.{kind}": changed}, ("lsp", kind, roll.choice(REQUESTS[kind]), *map(str, place)))

    def _arguments(self, roll: random.Random) -> Input:
        words = ["check", "suite", "outcomes", "fmt", "draw", "names", "models", "ptx", "kernel", "fix", "weaken"]
        values = ["t.litmus", "m.cat", "ptx-9.4", "sc", "z3", "auto", "5M", "-", "", ".", "none", "../x", "exists race"]
        values += [
            "exists (x == 1)",
            "/dev/null",
            "a\x1b]0;b",
            "--",
            *NUMBERS,
            # No shell hands over a NUL or half a character; // has all files of the machine below it.
            *(one for one in ODD if one not in ("\x00", "\ud800", "//")),
        ]
        argv = [roll.choice(words)]
        for _ in range(roll.randrange(6)):
            argv.append(roll.choice(OPTIONS if roll.random() < 0.5 else values))
        if argv[0] in ("check", "outcomes", "draw", "fix", "weaken", "suite"):
            argv += [*BUDGET[:2], "--budget", "100k"]
            argv.append("t.litmus")
        return Input("arguments", {"t.litmus": self.test, "m.cat": self.cat[0]}, tuple(argv))


COMMANDS = (
    "check t.litmus", "check t.litmus --confirm", "check t.litmus --model m.cat", "check t.litmus --json -",
    "explain t.litmus", "explain t.litmus --model m.cat", "outcomes t.litmus", "draw t.litmus -o x.svg",
    "draw t.litmus --model m.cat -o x.dot", "fix t.litmus --search 1", "weaken t.litmus",
    "weaken t.litmus --model m.cat", "sync t.litmus --search 1", "sync t.litmus --strip order --search 1",
    "sync t.litmus --model m.cat --search 1", "sync p.json --search 1", "mutate-model m.cat t.litmus --each 0.5 -j 1",
    "suite t.litmus --no-expect --no-cache", "kernel k.ptx --launch l.json", "kernel k.ptx --launch l.json --fix",
    "kernel k.ptx --launch l.json --mutate", "kernel k.ptx --launch l.json --any-grid --any-trips",
    "kernel k.ptx --launch l.json --sweep grid.x=0..2", "kernel k.ptx --launch l.json --annotate",
    "kernel k.ptx --launch l.json --report x.html", "kernel k.ptx --launch l.json --unwritten --litmus tests",
    "kernel k.ptx --launch l.json --what-if 31:drop", "kernel k.ptx --launch l.json --what-if 24:relaxed",
    "kernel k.ptx --launch l.json --readings", "kernel k.ptx --launch l.json --json -",
    "diff ptx-9.4 m.cat t.litmus --no-cache", "diff m.cat sc t.litmus --outcomes --format json --no-cache",
    "report t.litmus -o x.html", "report t.litmus --model m.cat --fix --search 1 -o -",
    "synth --size 2 -j 1 --model m.cat", "verify coherence --size 2 -j 1 --model m.cat", "verify m.cat --size 2 -j 1",
)  # fmt: skip
"""What is typed before the budget."""

NAMES = ("completion", "references", "highlights")
REQUESTS = {
    "litmus": ("diagnostics", "check", "hover", "definition", "symbols", "format", "repair", *NAMES),
    "cat": ("diagnostics", "hover", "definition", "symbols", *NAMES),
    "ptx": ("diagnostics", "hover", *NAMES),
}
"""What the language server is asked about each kind of document."""

KINDS = (
    "litmus",
    "litmus",
    "litmus",
    "litmus",
    "cat",
    "cat",
    "csv",
    "launch",
    "ptx",
    "arguments",
    "commands",
    "commands",
    "requests",
)


def inputs(count: int, seed: int, only: str | None = None) -> Iterator[tuple[int, Input]]:
    """Inputs by number; each depends on the seed and its number alone."""
    corpus = Corpus()
    for number in range(count):
        roll = random.Random(f"{seed}/{number}")
        yield number, corpus.make(only or roll.choice(KINDS), roll)


WORST: dict[str, float] = {}
"""The most seconds of the processor that an input of each command took."""


# ---- what has to hold ------------------------------------------------------------------------------------------------


def fault(one: Input) -> str:
    """What is wrong with how the program takes an input; nothing if it is right. Runs in the current folder."""
    for name, text in one.files.items():
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    began = time.process_time()
    code, out, err = (_requested if one.kind == "requests" else _run)(one.argv)
    seconds = time.process_time() - began
    WORST[one.argv[0]] = max(WORST.get(one.argv[0], 0.0), seconds)
    if code not in CODES:
        return f"exit code {code}: {(err or out)[-400:]}"
    for sign in ("Traceback", "internal error:", "internal error in ", "\x1b", "\u202e", "\x85"):
        if sign in err or (
            sign in out and one.argv[0] not in ("fmt", "ptx", "fix", "weaken") and "--fix" not in one.argv
        ):
            return f"says {sign!r}: {(err + out)[-400:]}"
    # A question of an editor that takes too long is ended from outside, and a suite has an answer for each test.
    if seconds > 2 * SECONDS + LATE and one.argv[0] not in ("suite", "lsp"):
        return f"took {seconds:.1f} s of the processor"
    if code == 2 and not err and "bad" not in out and "error" not in out:
        return "exit code 2 without a word"
    return _engines(one) if one.argv[0] == "check" and one.kind in ("litmus", "cat") and code in (0, 1) else ""


def _requested(argv: tuple[str, ...]) -> tuple[int, str, str]:
    """The answer of the language server's process to one question, as JSON."""
    from memmodel.lsp.features import answer

    _, kind, name, line, character = argv
    text = Path(f"t.{kind}").read_text("utf-8", "surrogateescape")  # a JSON string may have half a character
    document = {"uri": f"file:///t.{kind}", "text": text, "kind": kind}
    bounds = {"model": "ptx-9.4", "effort": 100_000, "seconds": SECONDS, "memory": 500_000_000}
    place = {"line": int(line), "character": int(character)}
    arguments = {"check": bounds, "repair": {**bounds, "what": "fix"}, "hover": place, "definition": place}
    arguments |= dict.fromkeys(NAMES, place)
    try:
        json.dumps(answer(name, document, arguments.get(name, {})))
    except Exception as error:
        return 70, "", f"{type(error).__name__}: {error}"
    return 0, "", ""


def _run(argv: tuple[str, ...]) -> tuple[int, str, str]:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b""), "utf-8")
    code: object = None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(list(argv))
    except SystemExit as left:
        code = left.code
    except BaseException as error:  # whatever gets past the program is what is looked for
        code = f"{type(error).__name__}: {error}"
    finally:
        sys.stdin = stdin
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "replace"))
    return code if isinstance(code, int) else (0 if code is None else -1), texts[0], texts[1] or str(code)


def _engines(one: Input) -> str:
    from memmodel import api
    from memmodel.answer import Budget, Observation

    budget = Budget(100_000, SECONDS, 500_000_000)
    model = "m.cat" if one.kind == "cat" else "ptx-9.4"
    found = [api.check("t.litmus", model, engine=engine, budget=budget).answer for engine in ("z3", "enumerate")]
    if any(answer.observation is Observation.UNDECIDED for answer in found):
        return ""
    if found[0].observation is not found[1].observation:
        return f"z3 says {found[0].observation.value}, enumeration {found[1].observation.value}"
    if not any(answer.unsearched for answer in found) and set(found[0].flags) != set(found[1].flags):
        return f"z3 finds {sorted(set(found[0].flags))}, enumeration {sorted(set(found[1].flags))}"
    return ""


def run(count: int, seed: int, only: str | None = None, say: Callable[[str], None] = print) -> int:
    """Try inputs in a folder of their own; how many are taken wrongly."""
    wrong = 0
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, one in inputs(count, seed, only):
                what = fault(one)
                if what:
                    wrong += 1
                    say(f"--- {seed}/{number} {one.kind}: {what}\n{' '.join(map(ascii, one.argv))}")
                    for name, text in one.files.items():
                        if name != "t.litmus" or one.kind == "litmus":
                            say(f"{name}: {ascii(text) if len(text) > 3000 else text!a}"[:4000])
        finally:
            os.chdir(home)
    return wrong


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    given = parser.parse_args()
    faults = run(given.count, given.seed, given.only)
    print(f"{given.count} inputs, {faults} taken wrongly")
    slowest = sorted(WORST.items(), key=lambda item: -item[1])
    print(f"with a budget of {SECONDS:g} s at most: {', '.join(f'{name} {worst:.1f} s' for name, worst in slowest)}")
    sys.exit(1 if faults else 0)
