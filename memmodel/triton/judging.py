"""A launch of a kernel of Triton, judged, and kept by what it is made of.

In: `TritonCall`. Out: `TritonResult`. Settled here: two calls are the same if their PTX, their launch without the
addresses of the program, the model and the limits are the same; where the source of memmodel has changed, nothing is
the same. What was not decided within its time is judged again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from memmodel.answer import Budget
from memmodel.base.resources import DEFAULT_MODEL, JOINED, cache_dir
from memmodel.cache import keys
from memmodel.cat.load import load_model
from memmodel.errors import InputError, InternalError
from memmodel.kernel.arguments.launches import launch_of
from memmodel.kernel.check.conductor import check_kernel
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.launch import Launch
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.output.record import record
from memmodel.kernel.output.sarif import sarif
from memmodel.kernel.question.comments import as_comment
from memmodel.limits.usage import STEPS_A_SECOND
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import PtxModule
from memmodel.source import Source
from memmodel.triton.calls import TritonCall
from memmodel.triton.options import SECONDS
from memmodel.triton.report import explain_triton

RELIED = "as-compilers-rely"
"""The model of kernels whose synchronization a compiler has written."""

BY_HAND = f"{DEFAULT_MODEL}{JOINED}D3-implicit{JOINED}D4ab-no-fences"
"""The model of kernels of Gluon: open questions about fences are not decided in favour of kernels without them."""

GOOD = ("clean", "explored", "partial")
FOLDER = "triton"
PATIENCE = 5
"""On a busy machine, and at low priority, a second of the processor may take that many of the clock."""

KEPT = ("name", "label", "word", "text", "record", "seconds", "sarif", "ptx")
"""What is written down of a result."""


@dataclass(frozen=True, slots=True)
class TritonResult:
    """What became of one launch. `word`: that of its verdict; `refused` where it cannot be judged, with the reason.

    `text`: the findings with the lines of the source; `record`: its JSON; `sarif`: its SARIF log; `verdict`: the
    verdict itself, where it was judged in this process. `seconds`: how long that took; 0 where it was known. `ptx`: the
    file with its PTX and its launch, which `memmodel kernel` reads as it is; empty where nothing is kept.
    """

    name: str
    label: str
    word: str
    text: str
    record: dict[str, Any] = field(default_factory=dict, repr=False)
    seconds: float = 0.0
    verdict: KernelVerdict | None = field(default=None, repr=False, compare=False)
    sarif: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    ptx: str = ""

    @property
    def clean(self) -> bool:
        """True if nothing was found in the part that was judged."""
        return self.word in GOOD

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that are broken, in their order."""
        findings = (finding for finding in self.record.get("findings", ()) if not finding["harmless"])
        return tuple(dict.fromkeys(finding["rule"] for finding in findings))

    @property
    def title(self) -> str:
        """`add (BLOCK=128)`."""
        return f"{self.name} ({self.label})" if self.label else self.name

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {name: getattr(self, name) for name in KEPT}


@dataclass(frozen=True, slots=True)
class TritonResults(Sequence[TritonResult]):
    """What became of several launches, or of the configurations of an autotuned kernel."""

    results: tuple[TritonResult, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[TritonResult]:
        return iter(self.results)

    @property
    def clean(self) -> bool:
        """True if every launch is clean in the part that was judged. False if there are no launches."""
        return bool(self.results) and all(result.clean for result in self.results)

    @property
    def table(self) -> str:
        """One line for each launch: its word, its configuration, the rules that are broken."""
        width = max((len(result.word) for result in self.results), default=0)
        long = max((len(result.title) for result in self.results), default=0)
        lines = (
            f"{result.word:{width}}  {result.title:{long}}  {', '.join(result.rules)}".rstrip()
            for result in self.results
        )
        return "\n".join(lines)

    def __str__(self) -> str:
        if len(self.results) == 1:
            return self.results[0].text
        bad = [result for result in self.results if not result.clean]
        return "\n\n".join((self.table, *(f"{result.title}\n{result.text}" for result in bad)))

    def assert_clean(self, *accept: str) -> None:
        """Raise AssertionError unless every verdict is `clean` or one of the words to accept."""
        __tracebackhide__ = True
        bad = tuple(result for result in self.results if result.word not in ("clean", *accept))
        if bad:
            raise AssertionError(str(TritonResults(bad)))


@dataclass(frozen=True, slots=True)
class TritonJudge:
    """How launches are judged. `model` None: the default; where something is found under it, what compilers rely on,
    and the verdict lists that as assumptions. `seconds`: of the processor, under each model. `kept`: verdicts are
    looked up and kept on disk.
    """

    model: str | None = None
    seconds: float = SECONDS
    kept: bool = True

    def result(self, call: TritonCall) -> TritonResult:
        """What becomes of a call. Never raises for what a call holds."""
        try:
            return self._result(call)
        except InputError as error:
            return TritonResult(call.name, call.label, "refused", error.render())
        except InternalError as error:
            return TritonResult(call.name, call.label, "refused", f"memmodel failed on it: {error}")

    def _result(self, call: TritonCall) -> TritonResult:
        started = perf_counter()
        folder = cache_dir() if self.kept else None
        text = call.ptx.rstrip("\0").replace("\r\n", "\n")
        name, path = f"<ptx of {call.name}>", None
        if folder is not None:
            path = folder / FOLDER / f"{keys.digest(text, call.text)}.ptx"
            name = str(path) if path.is_file() or _write(path, text) else name
        module = parse_module(Source(name, text))
        entry = entry_of(module, call.name if call.name in module.functions else None)
        x, y, z = call.grid
        launch = launch_of(
            entry, (x * call.num_ctas, y, z), call.values, cluster=(call.num_ctas, 1, 1),
            dynamic_shared=call.dynamic_shared, names=[name for name, _ in call.args],
        )  # fmt: skip
        if path is not None:
            _write(path, f"{text.rstrip()}\n{as_comment(launch)}\n")
        models = (DEFAULT_MODEL, BY_HAND if call.by_hand else RELIED) if self.model is None else (self.model,)
        texts = [keys.of_model(load_model(model)) for model in models]
        key = keys.digest(keys.program(), *texts, text, launch.model_dump_json(), call.label)
        known = None if folder is None else _read(folder / FOLDER / f"{key}.json")
        if known is not None:
            return TritonResult(**{**known, "seconds": 0.0})
        verdict = self._verdict(module, launch, entry.name, models)
        result = TritonResult(
            call.name, call.label, verdict.word, explain_triton(verdict), record(verdict),
            round(perf_counter() - started, 3), verdict, sarif([verdict], by_source=True),
            name if path is not None and name == str(path) else "",
        )  # fmt: skip
        if folder is not None and not verdict.spent:
            _write(folder / FOLDER / f"{key}.json", json.dumps(result.to_json()))
        return result

    def _verdict(self, module: PtxModule, launch: Launch, entry: str, models: Sequence[str]) -> KernelVerdict:
        """The verdict under the first model; under the next one, if that has other findings."""
        verdicts = []
        for model in models:
            budget = Budget(round(self.seconds * STEPS_A_SECOND), self.seconds * PATIENCE)
            verdicts.append(check_kernel(module, launch, entry=entry, model=model, budget=budget))
            if not verdicts[-1].serious:
                break
        found = [{finding.key for finding in verdict.serious} for verdict in verdicts]
        return verdicts[-1] if found[-1] != found[0] else verdicts[0]


def _read(path: Path) -> dict[str, Any] | None:
    """A result that was kept; None if there is none that can be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and data.keys() == set(KEPT) else None


def _write(path: Path, text: str) -> bool:
    """True if the file is there now, whole. What cannot be written is not kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError:
        return False
    return True
