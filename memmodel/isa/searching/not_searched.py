"""Why a search for programs does not use a row of the instruction table. `isa.searching.searched` has the others.

In: nothing. Out: `NOT_SEARCHED`: the first heads of rows, each with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping

_SAME = "its events are those of an instruction that is searched"
_LANES = "a thread of a program stands for a warp, so that lanes do not differ"
_GRIDS = "the threads of a program are of one grid"
_ENDPOINTS = "programs declare no logical endpoints"
_BARRIERS = "a count, or a value that threads combine, changes no order"
_PROXY = (
    "its proxy has the rules of the asynchronous proxy, which is searched, and no instruction beside loads and stores"
)

NOT_SEARCHED: Mapping[str, str] = {
    **dict.fromkeys(("ldu", "sust", "suld", "tld", "cold"), _PROXY),
    **dict.fromkeys(("st.bulk", "ldmatrix", "stmatrix", "membar", "membar.proxy", "membar.proxy.async"), _SAME),
    **dict.fromkeys(("bar.arrive", "bar.red", "barrier.sync", "barrier.arrive", "barrier.red"), _BARRIERS),
    **dict.fromkeys(
        ("bar.warp.sync", "vote.sync", "redux.sync", "match.any.sync", "shfl.sync", "elect.sync", "activemask"), _LANES
    ),
    **dict.fromkeys(("griddepcontrol.launch_dependents", "griddepcontrol.wait"), _GRIDS),
    **dict.fromkeys(
        (
            "fence.proxy.generic::fabric",
            "fabric.try_get",
            "fabric.try_put",
            "fabric.try_red",
            "fabric.try_pullred",
            "fabric.try_atom",
            "fabric.submit",
            "fabric.wait",
        ),
        _ENDPOINTS,
    ),
    "mbarrier.expect_tx": "it is a part of the copy that it counts",
    "mbarrier.check_layout": "objects of programs have one layout",
    "cp.async.wait_all": _SAME,
    "cp.reduce.async.bulk.tensor": "as cp.reduce.async.bulk; its read of the map is that of the tensor copy",
    **dict.fromkeys(("multimem.st.async", "multimem.red.async"), _SAME),
    **dict.fromkeys(("wgmma.mma_async.sp", "tcgen05.mma.ws", "tcgen05.ld.red"), _SAME),
    **dict.fromkeys(("applypriority.async.bulk", "discard", "setmaxnreg"), "it orders nothing and moves no value"),
}
