"""A plugin for pytest: litmus tests as test items with `--memmodel`, and fixtures for tests and for kernels.

In: pytest's command line. Out: an item for each question of each `.litmus` file and each model that its Expect line
names, and one for each property of a cat file. Settled here (docs/regression.md): the model file that `--memmodel`
names stands in for the model that it derives from. What was judged before is looked up; an item whose answer is known
to be as expected loads nothing of what judges.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from memmodel.cache.verdicts import PosedQuestion, Verdicts
    from memmodel.engine import Options
    from memmodel.testing import Asserting
    from memmodel.triton.pytest_kernels import KernelChecks

_ENGINES = ("auto", "z3", "enumerate")

_LOG = "memmodel-kernel-log"
_CHECKS = pytest.StashKey[list["KernelChecks"]]()
_KERNEL_MARK = (
    "memmodel_findings(*rules, kernel=None, accept=()): the rules that the kernels of a test break, or those of one "
    "kernel; accept: words of verdicts that do as well as clean"
)
_MARKS = (
    "memmodel: a verdict of memmodel on a litmus test, or on a property of a model",
    "model(name): the model under which a litmus test is judged",
    "engine(name): the engine that judges it",
    "folder(name): the folder of its file",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memmodel", "litmus tests (memmodel)")
    add = group.addoption
    add(
        "--memmodel",
        action="append",
        default=[],
        metavar="MODEL",
        help="Collect .litmus files. MODEL: a shipped model, a cat file, which stands in for the shipped model that it "
        "derives from, or NAME=FILE, which says for which; may be repeated.",
    )
    add(
        "--memmodel-engine",
        action="append",
        default=[],
        choices=_ENGINES,
        help="Which engine answers (auto); may be repeated, for an item each.",
    )
    add("--memmodel-bound", type=int, default=3, metavar="N", help="Iterations of a loop that is unrolled (3).")
    add("--memmodel-budget", default=None, metavar="STEPS", help="Solver steps for each answer, such as 5M (100M).")
    add("--memmodel-timeout", type=float, default=None, metavar="SECONDS", help="Seconds for each answer (120).")
    add("--memmodel-no-cache", action="store_true", help="Judge everything anew, and keep nothing.")
    add(
        "--memmodel-allow-include",
        action="append",
        default=[],
        metavar="DIR",
        help="Models may include files below this folder as well as below their own; may be repeated.",
    )
    add("--memmodel-sarif", default=None, metavar="FILE", help="Write what `memmodel_kernels` found as a SARIF log.")
    add("--memmodel-size", type=int, default=4, metavar="N", help="Instructions up to which properties are tried (4).")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _KERNEL_MARK)
    if (path := config.getoption("--memmodel-sarif")) is not None:
        from memmodel.triton.pytest_kernels import KernelLog

        config.pluginmanager.register(KernelLog(config, path), _LOG)
    if config.getoption("--memmodel"):
        for mark in _MARKS:
            config.addinivalue_line("markers", mark)
        config.pluginmanager.register(LitmusRun(config), "memmodel-collection")


@pytest.fixture
def memmodel_kernels(request: pytest.FixtureRequest) -> Iterator[KernelChecks]:
    """Judges the kernels that a test launches through Triton, or hands over with `check` and `check_ptx`.

    Each specialization is an item of the report. The marker `memmodel_findings` says what is expected to be found.
    """
    from memmodel.triton.pytest_kernels import KernelChecks

    checks = KernelChecks(request.node)
    with checks.watching():
        yield checks


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test that has judged kernels fails by what is found in them."""
    outcome = yield
    checks = getattr(item, "funcargs", {}).get("memmodel_kernels")
    if checks is not None:
        item.stash[_CHECKS].append(checks)
        checks.settle()
        log = item.config.pluginmanager.get_plugin(_LOG)
        if log is not None:
            log.add(checks)
        problem = checks.report(item)
        if problem is not None:
            pytest.fail(problem, pytrace=False)
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The kernels of a test follow it in the report."""
    checks: list[KernelChecks] = []
    item.stash[_CHECKS] = checks
    outcome = yield
    for judged in checks:
        from memmodel.triton.pytest_kernels import log_kernels

        log_kernels(item, judged)
    return outcome


@pytest.fixture(scope="session")
def memmodel(request: pytest.FixtureRequest) -> Asserting:
    """`assert_never`, `assert_sometimes`, `assert_always` and `check` under the default model or its stand-in."""
    from memmodel.base.resources import DEFAULT_MODEL
    from memmodel.testing import Asserting

    run = request.config.pluginmanager.get_plugin("memmodel-collection")
    if run is None:
        return Asserting()
    model = next(iter(run.standing.get(DEFAULT_MODEL, ())), DEFAULT_MODEL)
    return Asserting(model, run.options(run.engines[0]), kept=not request.config.getoption("--memmodel-no-cache"))


class LitmusRun:
    """One run: which models stand in for which, how tests are judged, and what is known. The hooks of a run with
    `--memmodel`."""

    def __init__(self, config: pytest.Config) -> None:
        from memmodel.cache.verdicts import Verdicts
        from memmodel.cat.load import configure
        from memmodel.errors import InputError

        self._config = config
        kept, include = not config.getoption("--memmodel-no-cache"), config.getoption("--memmodel-allow-include")
        self.verdicts: Verdicts = Verdicts.kept(kept)
        self.engines: tuple[str, ...] = tuple(dict.fromkeys(config.getoption("--memmodel-engine"))) or ("auto",)
        self.standing: dict[str, list[str]] = {}
        self._options: dict[str, Options] = {}
        self._judged_by: dict[str, str] = {}
        self._shipped: dict[str, bool] = {}
        try:
            configure(include, kept=kept)
            for text in config.getoption("--memmodel"):
                name, model = self._stands_for(text)
                self.standing.setdefault(name, []).append(model)
            for engine in self.engines:
                self._judged_by[engine] = self._key_of(engine)
        except InputError as error:
            raise pytest.UsageError(error.render()) from error

    def models(self, name: str) -> list[str]:
        """The models that are judged where something is expected of a shipped model."""
        return self.standing.get(name) or [name]

    def models_of(self, path: str, name: str) -> list[str]:
        """As `models`, for a name in the Expect line of a test: a file beside it has one too. Raises InputError."""
        from memmodel.base.resources import is_shipped

        if name not in self._shipped:
            self._shipped[name] = name in self.standing or is_shipped(name)
        if self._shipped[name]:
            return self.models(name)
        from memmodel.cat import named_by

        return [named_by(path, name)]

    def options(self, engine: str) -> Options:
        """How tests are judged. Raises InputError."""
        if engine not in self._options:
            from memmodel.cli.options import parse_budget
            from memmodel.engine import Options

            get = self._config.getoption
            budget = parse_budget(get("--memmodel-budget"), get("--memmodel-timeout"))
            self._options[engine] = Options(engine, budget, get("--memmodel-bound"))
        return self._options[engine]

    def _key_of(self, engine: str) -> str:
        """The same as part of a key, without loading an engine where the budget is the default."""
        from memmodel.cache import keys

        bound, budget = self._config.getoption("--memmodel-bound"), self._config.getoption("--memmodel-budget")
        return keys.of_options(engine, bound, None if budget is None else self.options(engine).budget.effort)

    def is_known(self, item: VerdictItem) -> bool:
        """True if a stored answer is known to be as expected."""
        from memmodel.errors import InputError

        if item.posed is None:
            return False
        try:
            return self.verdicts.meets(item.posed, item.model, self._judged_by[item.engine], item.word) is True
        except InputError:  # of the model, which the item is to say
            return False

    def name_of(self, path: Path) -> str:
        """A file as a person would type it."""
        relative = os.path.relpath(path, self._config.invocation_params.dir)
        return str(path) if relative.startswith("..") else relative

    def _stands_for(self, text: str) -> tuple[str, str]:
        """The name of a shipped model, and the model that is judged in its place. Raises InputError."""
        from memmodel.base.resources import DEFAULT_MODEL, base_of
        from memmodel.errors import InputError

        name, equals, path = text.partition("=")
        if equals and not os.path.exists(text):
            self.verdicts.known(path)
            self._is_expected(name)
            return name, path
        base = base_of(self.verdicts.known(text).files, text)
        if base is None:
            hint = f"say it: --memmodel {DEFAULT_MODEL}={text}"
            raise InputError(f"{text} derives from no shipped model, so nothing is expected of it", hint=hint)
        return base, text

    def _is_expected(self, name: str) -> None:
        """Raises InputError for a name that no Expect line can mean: nothing would be judged in its place."""
        from memmodel.base.resources import axioms_dir, is_shipped
        from memmodel.errors import InputError, suggestion

        if is_shipped(name) or (name.endswith(".cat") and os.path.basename(name) == name):
            return
        hint = suggestion(name, [path.stem for path in axioms_dir().glob("*.cat")])
        raise InputError(f"no model `{name}` is known", hint=hint)

    # ---- hooks -------------------------------------------------------------------------------------------------------

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if file_path.suffix == ".litmus":
            return LitmusFile.of(parent, file_path, self)
        if file_path.suffix == ".cat" and file_path.parent.name == "properties":
            return PropertyFile.of(parent, file_path, self)
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Report an item whose answer is known, without what pytest does around a function that runs.

        Two thousand items take a second less. What the items before have set up is torn down as pytest does it.
        """
        state = getattr(item.session, "_setupstate", None)
        if not isinstance(item, VerdictItem) or not hasattr(state, "teardown_exact") or not self.is_known(item):
            return None
        hooks = item.ihook
        hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for when in ("setup", "call", "teardown"):
            words: dict[str, Any] = {"keywords": {item.name: 1}, "outcome": "passed", "longrepr": None, "when": when}
            report = pytest.TestReport(nodeid=item.nodeid, location=item.location, **words)
            hooks.pytest_runtest_logreport(report=report)
        hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        state.teardown_exact(nextitem)  # type: ignore[union-attr]
        return True

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.verdicts.trouble:
            terminalreporter.write_line(f"memmodel: verdicts are not kept: {self.verdicts.trouble}")

    def pytest_unconfigure(self) -> None:
        self.verdicts.close()


class LitmusFile(pytest.File):
    """A `.litmus` file. `named`: as a person would type it."""

    collection: LitmusRun
    named: str

    @staticmethod
    def of(parent: pytest.Collector, path: Path, collection: LitmusRun) -> LitmusFile:
        file: LitmusFile = LitmusFile.from_parent(parent, path=path)
        file.collection, file.named = collection, collection.name_of(path)
        file.add_marker(pytest.mark.memmodel)
        file.add_marker(pytest.mark.folder(name=os.path.dirname(file.named).replace(os.sep, "/")))
        return file

    def collect(self) -> Iterator[pytest.Item]:
        from memmodel.errors import InputError
        from memmodel.source import Source

        run = self.collection
        try:
            asked = run.verdicts.posed(Source.read(self.named))
        except InputError as error:
            yield VerdictItem.of(self, "file", run, problem=error.render())
            return
        for posed in asked:
            number = f"#{posed.number + 1}" if len(asked) > 1 else ""
            for name, word in posed.words.items():
                try:
                    models = run.models_of(self.named, name)
                except InputError as error:
                    yield VerdictItem.of(self, f"{name}{number}", run, problem=error.render())
                    continue
                for model in models:
                    for engine in run.engines:
                        stands = f"{name}={Path(model).stem}" if name in run.standing and model != name else name
                        by = f"-{engine}" if len(run.engines) > 1 else ""
                        yield VerdictItem.of(self, f"{stands}{number}{by}", run, posed, name, model, word, engine)
        if not any(posed.rows for posed in asked):
            yield VerdictItem.of(self, "no-expectation", run)


class VerdictItem(pytest.Item):
    """A question of a test under a model. `name_expected`: the model of whom the file expects `word`."""

    collection: LitmusRun
    problem: str
    posed: PosedQuestion | None
    standing_for: str
    model: str
    word: str
    engine: str

    @staticmethod
    def of(
        parent: pytest.Collector,
        name: str,
        collection: LitmusRun,
        posed: PosedQuestion | None = None,
        standing_for: str = "",
        model: str = "",
        word: str = "",
        engine: str = "",
        *,
        problem: str = "",
    ) -> VerdictItem:
        verdict: VerdictItem = VerdictItem.from_parent(parent, name=name)
        verdict.collection, verdict.posed, verdict.problem = collection, posed, problem
        verdict.standing_for, verdict.model, verdict.word, verdict.engine = standing_for, model, word, engine
        if posed is not None:
            verdict.add_marker(pytest.mark.model(name=standing_for))
            verdict.add_marker(pytest.mark.engine(name=engine))
        return verdict

    def runtest(self) -> None:
        if self.problem:
            raise Unexpected(self.problem)
        if self.posed is None:
            pytest.skip("the file says nothing of what is expected")
        run = self.collection
        if run.is_known(self):
            return
        from memmodel.testing import failure

        report = run.verdicts.report(self.posed, self.model, run.options(self.engine), expected=self.word, reasons=True)
        if not report.ok:
            report = run.verdicts.explained(report, self.posed, self.model, run.options(self.engine))
            standing = self.standing_for if self.standing_for != report.model else ""
            difference = f"memmodel diff {self.standing_for} {self.model} {report.path}\n" if standing else ""
            raise Unexpected(
                f"{failure(report, standing)}\n\n{difference}memmodel check {report.path} --model {self.model}"
            )

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the item is: the file, the line of what it expects, its title."""
        line = self._line()
        return self.path, line, f"{self.path.name} under {self.name}"

    def _line(self) -> int | None:
        rows = self.posed.rows if self.posed is not None else ()
        start = next((start for name, _, start, _ in rows if name == self.standing_for), None)
        if start is None or self.posed is None:
            return None
        return self.posed.text.source.text.count("\n", 0, start)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is printed of a failure: our own sentences, and a traceback only for a bug."""
        return _sentences(excinfo) or super().repr_failure(excinfo, style)


class Unexpected(Exception):
    """An item failed, and its text says why."""


def _sentences(excinfo: pytest.ExceptionInfo[BaseException]) -> str | None:
    """What is wrong in our own words; None for a bug."""
    from memmodel.errors import InputError

    error = excinfo.value
    if isinstance(error, InputError):
        return error.render()
    return str(error) if isinstance(error, Unexpected) else None


# ---- properties ------------------------------------------------------------------------------------------------------


class PropertyFile(pytest.File):
    """A cat file of `axioms/properties`, with an item for each model that stands in for the default model."""

    collection: LitmusRun

    @staticmethod
    def of(parent: pytest.Collector, path: Path, collection: LitmusRun) -> PropertyFile:
        file: PropertyFile = PropertyFile.from_parent(parent, path=path)
        file.collection = collection
        file.add_marker(pytest.mark.memmodel)
        return file

    def collect(self) -> Iterator[pytest.Item]:
        from memmodel.base.resources import DEFAULT_MODEL

        for model in self.collection.models(DEFAULT_MODEL):
            tried: PropertyItem = PropertyItem.from_parent(self, name=Path(model).stem if "/" in model else model)
            tried.model = model
            tried.add_marker(pytest.mark.model(name=DEFAULT_MODEL))
            yield tried


class PropertyItem(pytest.Item):
    """A property of a model, tried on all programs up to `--memmodel-size`."""

    model: str

    def runtest(self) -> None:
        from memmodel.search.tasks import verified

        holds, text = verified(str(self.path), self.model, self.config.getoption("--memmodel-size"))
        if not holds:
            raise Unexpected(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is printed of a failure: the counterexample, and a traceback only for a bug."""
        return _sentences(excinfo) or super().repr_failure(excinfo, style)
