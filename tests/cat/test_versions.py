"""What a version of PTX changed in the model: ptx-9.4 is ptx-9.3 with the halves of alias fences."""

from __future__ import annotations

from memmodel import api
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Model

ALIAS_HALVES = """PTX alias-halves
.global .u32 x = 0;
y aliases x;
.global .u32 flag = 0;
thread P0 {{
    st.weak.global.u32 [x], 1;
    {release};
    st.{store}.sys.global.u32 [flag], 1;
}}
thread P1 {{
SPIN:
    ld.{load}.sys.global.u32 %f, [flag];
    setp.eq.u32 %p, %f, 0;
    @%p bra SPIN;
    {acquire};
    ld.weak.global.u32 %r0, [y];
}}
exists (P1:r0 == 0)
"""


def bodies(model: Model) -> dict[str, str]:
    """The definitions of a model as text, without what they are about."""
    return {named.name: str(named.body) for named in model.definitions}


def test_the_newer_model_differs_in_alias_fences_alone() -> None:
    older, newer = load_model("ptx-9.3"), load_model("ptx-9.4")
    added = bodies(newer).keys() - bodies(older).keys()
    assert added == {"alias-release", "alias-acquire"} and not bodies(older).keys() - bodies(newer).keys()
    assert [check.name for check in newer.checks] == [check.name for check in older.checks]


def test_halves_of_an_alias_fence_order_since_9_4_and_whole_fences_always_did() -> None:
    words = {"release": "fence.proxy.alias.release.sys", "acquire": "fence.proxy.alias.acquire.sys"}
    halves = ALIAS_HALVES.format(**words, store="relaxed", load="relaxed")
    assert api.check(halves, "ptx-9.3").answer.observation.value == "sometimes"
    assert api.check(halves, "ptx-9.4").answer.observation.value == "never"
    whole = ALIAS_HALVES.format(release="fence.proxy.alias", acquire="fence.sc.sys", store="release", load="acquire")
    for model in ("ptx-9.3", "ptx-9.4"):
        assert api.check(whole, model).answer.observation.value == "never"
