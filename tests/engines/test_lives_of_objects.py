"""An mbarrier object is not tested when it is no more, in whatever thread."""

import pytest

from memmodel import api
from memmodel.source import Source

AFTER = """PTX after
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0 {{
    mbarrier.arrive.shared::cta.b64 _, [bar];
    {before}
    mbarrier.inval.shared::cta.b64 [bar];
    {anew}
    {after}
}}
thread B @ cta 0 {{
    {meet}
    mbarrier.test_wait.parity.shared::cta.b64 %p, [bar], 0;
    {left}
}}
exists undefined
"""
MEET = "bar.sync 0;"


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize(
    ("parts", "flags"),
    [
        ({"after": MEET, "meet": MEET}, {"undefined-mbarrier"}),
        ({"before": MEET, "left": MEET}, set()),
        ({"after": MEET, "meet": MEET, "anew": "mbarrier.init.shared::cta.b64 [bar], 1;"}, set()),
        ({}, {"undefined-mbarrier-inval"}),
    ],
    ids=["after", "before", "anew", "unordered"],
)
def test_a_test_behind_an_inval_is_undefined(parts: dict[str, str], flags: set[str], engine: str) -> None:
    text = AFTER.format_map(dict.fromkeys(("before", "after", "meet", "left", "anew"), "") | parts)
    answer = api.check(Source("t", text), engine=engine).answer
    assert {finding.flag for finding in answer.findings} == flags
