"""`memmodel.triton.check`: a kernel and what it is called with; a table where it is autotuned. Under a stand-in."""

from __future__ import annotations

from pathlib import Path

from helpers.triton_programs import run_program

PROGRAM = """
from memmodel import FakeArray as F, InputError
from memmodel.triton import check
a, b = F((64,)), F((64,))

# A kernel, with fakes; nothing is left of the driver that stood in.
results = check(racy, a, b, 64, BLOCK=64, num_warps=2, grid=1, target=("cuda", 100))
(result,) = results
assert (result.word, result.rules, result.label) == ("findings", ("data-race",), "BLOCK=64, num_warps=2"), result
assert str(results) == result.text and "kernels.py:9:5" in result.text and result.verdict.word == "findings"
assert triton.runtime.driver.active.get_current_target().arch == 90
assert not triton.knobs.runtime.launch_enter_hook.calls
try: results.assert_clean()
except AssertionError as error: assert "data-race" in str(error)
else: raise SystemExit("a race is asserted to be clean")

# Its PTX is kept with its launch, so that the command line asks more of it.
from memmodel.kernel.check.conductor import check_kernel
asked = check_kernel(result.ptx)
assert f"PTX: {result.ptx}" in result.text and asked.launch.params == result.verdict.launch.params
assert [finding.key for finding in asked.serious] == [finding.key for finding in result.verdict.serious]

# Its verdict is kept; another target is another kernel, whose PTX is the same here.
(again,) = check(racy, a, b, 64, BLOCK=64, num_warps=2, grid=lambda meta: (meta["BLOCK"] // 64,))
assert again.seconds == 0 and again.text == result.text

# The same array twice is the same memory: what is read is overwritten.
assert check(good, a, a, 64, BLOCK=64, grid=(1,)).clean
(shared,) = check(good, a, a, 64, BLOCK=64, grid=2)
assert shared.rules == ("data-race",), shared

# Contents that are given reach the verdict, and are what is kept by.
from array import array
from memmodel import Known
(known,) = check(racy, Known(array("f", [0.0] * 64)), b, 64, BLOCK=64, num_warps=2, grid=1)
assert "the contents that the launch gives to" in known.text and known.rules == ("data-race",), known

# Every configuration of an autotuned kernel has a line.
def only_small(arguments):
    if arguments["BLOCK"] > 128: raise ValueError("too large")
configs = [triton.Config({"BLOCK": size}, num_warps=2, pre_hook=only_small) for size in (64, 128, 256)]
tuned = check(triton.Autotuner(racy, configs), a, b, 64, grid=1)
assert [(entry.word, entry.label) for entry in tuned] == [
    ("findings", "BLOCK=64, num_warps=2"), ("findings", "BLOCK=128, num_warps=2"),
    ("refused", "BLOCK: 256, num_warps: 2")], tuned
assert "too large" in tuned[2].text and tuned.table.count(chr(10)) == 2 and not tuned.clean

# What cannot be checked is said.
for wrong, message in (
    (lambda: check(print, grid=1), "no kernel of Triton"),
    (lambda: check(good, a, b, grid=1), "missing a required argument: 'n'"),
    (lambda: check(good, a, b, 64, BLOCK=1, grid="x"), "x"),
):
    try: wrong()
    except (InputError, ValueError) as error: assert message in str(error), error
    else: raise SystemExit(message)
assert check(good, a, b, 64, BLOCK=64, grid=0).clean
print("done")
"""


def test_kernels_with_fakes(tmp_path: Path) -> None:
    run = run_program(tmp_path, PROGRAM)
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stdout + run.stderr
