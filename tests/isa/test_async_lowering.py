"""What instructions of the asynchronous half lower to: objects, copies with their parts and signals, groups, fences.

The steps are worked out by hand from the pages of the ISA; `isa_samples.brief` says how they are written. Parts of an
asynchronous instruction stand below its issue, numbered from 0.
"""

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, ops, shown

OWN, ANYWHERE = "Object(&bar shared_cta)", "Object(&bar shared_cluster)"
PAIR = "_|%p"

REFUSED = "UndefinedIf(get_first_ctaid is for a response that says canceled eq.u32(%q0, 0))"

OBJECTS = {
    "mbarrier.init.b64 [bar], 2;": f"Mbarrier(init) {OWN} count=2",
    "mbarrier.inval.shared::cta.b64 [bar];": f"Mbarrier(inval) {OWN}",
    "mbarrier.expect_tx.b64 [bar], 16;": f"Mbarrier(expect_tx relaxed cta unscoped) {ANYWHERE} bytes=16",
    "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [bar@cta1], 16;": (
        "Mbarrier(complete_tx relaxed cluster) Object(&bar@1 shared_cluster) bytes=16"
    ),
    "mbarrier.arrive.b64 _, [bar];": f"Mbarrier(arrive release cta unscoped) {ANYWHERE} count=1",
    "mbarrier.arrive.shared::cluster.b64 _, [bar];": f"Mbarrier(arrive release cta unscoped) {ANYWHERE} count=1",
    "mbarrier.arrive.relaxed.cluster.b64 _, [bar];": f"Mbarrier(arrive relaxed cluster) {ANYWHERE} count=1",
    "mbarrier.arrive_drop.b64 _, [bar];": f"Mbarrier(arrive release cta unscoped) {ANYWHERE} count=1 drop",
    "mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [bar@cta1], 2;": (
        "Mbarrier(arrive release cluster) Object(&bar@1 shared_cluster) count=2 drop"
    ),
    "mbarrier.try_wait.parity.relaxed.cluster.b64 %p, [bar], 1;": (
        f"Mbarrier(test relaxed cluster) {OWN} register=p parity=1"
    ),
}


def parts(count: int) -> str:
    """The numbers of the first parts."""
    return " ".join(map(str, range(count)))


SOURCE = "Access(read async bulk asynchronous source)"
WRITTEN = "Access(write async bulk asynchronous)"
BULK = "Issue(bulk)"
IN_GROUP = "tracks={bulk}"
STRONG = "relaxed gpu async bulk asynchronous"


def told(by: str, bar: str, of: str, size: str = "") -> str:
    """The signal of a copy."""
    return f"+ SignalPart(Signal(complete_tx cluster {by}) {bar} {size}of=[{of}])"


LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
TO_CLUSTER = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
COPIED = {
    f"{LOAD} [tile], [src], 32, [bar];": [
        BULK,
        f"+ Gather({SOURCE} Chunk(&src global 32))",
        f"+ Scatter({WRITTEN} Chunk(&tile shared_cta 32) 0)",
        told("bulk", OWN, "0 1", "bytes=32 "),
    ],
    f"{TO_CLUSTER} [%rd0], [%rd1+16], %r0, [%rd2];": [
        "UndefinedIf(cp.async.bulk copies a multiple of 16 bytes and.u32(%r0, 15))",
        BULK,
        f"+ Gather({SOURCE} Chunk(add.u64(%rd1, 16) global %r0))",
        f"+ Scatter({WRITTEN} Chunk(%rd0 shared_cluster %r0) 0)",
        told("bulk", "Object(%rd2 shared_cluster)", "0 1", "bytes=%r0 "),
    ],
    f"{TO_CLUSTER}.multicast::cluster [tile], [src], 32, [bar], 3;": [
        BULK,
        f"+ Gather({SOURCE} Chunk(&src global 32))",
        f"+ Scatter({WRITTEN} Chunk(&tile@0 shared_cluster 32) 0)",
        told("bulk", "Object(&bar@0 shared_cluster)", "0 1", "bytes=32 "),
        f"+ Scatter({WRITTEN} Chunk(&tile@1 shared_cluster 32) 0)",
        told("bulk", "Object(&bar@1 shared_cluster)", "0 3", "bytes=32 "),
    ],
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [tile@cta1], [tile], 16, [bar@cta1];": [
        BULK,
        f"+ Gather({SOURCE} Chunk(&tile shared_cta 16))",
        f"+ Scatter({WRITTEN} Chunk(&tile@1 shared_other 16) 0)",
        told("bulk", "Object(&bar@1 shared_cluster)", "0 1", "bytes=16 "),
    ],
    "cp.async.bulk.global.shared::cta.bulk_group [src], [tile], 16;": [
        BULK,
        f"+ Gather({SOURCE} Chunk(&tile shared_cta 16) {IN_GROUP})",
        f"+ Scatter({WRITTEN} Chunk(&src global 16) 0 {IN_GROUP})",
    ],
    "cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128 [src], [tile], 16;": [
        BULK,
        f"+ Gather(Access(read {STRONG} source) Chunk(&tile shared_cta 16 scalar=16) {IN_GROUP})",
        f"+ Scatter(Access(write {STRONG}) Chunk(&src global 16 scalar=16) 0 {IN_GROUP})",
    ],
    "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [src], [tile], 32, 0xff;": [
        BULK,
        f"+ Gather({SOURCE} Chunk(&tile shared_cta 32) {IN_GROUP})",
        f"+ Scatter({WRITTEN} Chunk(&src global 32 mask=255) 0 {IN_GROUP})",
    ],
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [tile], [src], 32, 4, %r0, [bar];": [
        "UndefinedIf(ignoreBytesRight is from 0 to 15 gt.u32(%r0, 15))",
        BULK,
        f"+ Gather({SOURCE} Chunk(&src global 32 skip_left=4 skip_right=%r0))",
        f"+ Scatter({WRITTEN} Chunk(&tile shared_cta 32) 0)",
        told("bulk", OWN, "0 1", "bytes=32 "),
    ],
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [src], [tile], 16;": [
        "Issue(bulk_reduction)",
        f"+ Gather(Access(read async bulk_reduction asynchronous source) Chunk(&tile shared_cta 16) {IN_GROUP})",
        "+ Update(Access(read relaxed sys async bulk_reduction rmw asynchronous) "
        "Access(write relaxed sys async bulk_reduction rmw asynchronous) "
        f"Chunk(&src global 16 scalar=4) 0 add u32 {IN_GROUP})",
    ],
    "cp.reduce.async.bulk.relaxed.cluster.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.max.s32 "
    "[tile@cta1], [tile], 32, [bar@cta1];": [
        "Issue(bulk_reduction)",
        "+ Gather(Access(read async bulk_reduction asynchronous source) Chunk(&tile shared_cta 32))",
        "+ Update(Access(read relaxed cluster async bulk_reduction rmw asynchronous) "
        "Access(write relaxed cluster async bulk_reduction rmw asynchronous) "
        "Chunk(&tile@1 shared_cluster 32 scalar=4) 0 max s32)",
        told("bulk_reduction", "Object(&bar@1 shared_cluster)", "0 1", "bytes=32 "),
    ],
}

MAP_READ = "+ AsyncRead(Access(read tensormap bulk asynchronous descriptor) TensorMapAt(&{} maps) [$map]{})"
TENSOR_LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
TENSOR = {
    f"{TENSOR_LOAD} [tile], [gmap, {{0, %r1}}], [bar];": [
        BULK,
        MAP_READ.format("gmap", f" {IN_GROUP}"),
        f"+ Gather({SOURCE} Box(%$map [0 %r1] True))",
        f"+ Scatter({WRITTEN} BoxTile(&tile shared_cluster %$map) 1)",
        told("bulk", ANYWHERE, "0 1 2", "bytes_of=1 "),
    ],
    f"{TENSOR_LOAD}.multicast::cluster [tile], [gmap, {{0, -1}}], [bar], 2;": [
        BULK,
        MAP_READ.format("gmap", f" {IN_GROUP}"),
        f"+ Gather({SOURCE} Box(%$map [0 -1] True))",
        f"+ Scatter({WRITTEN} BoxTile(&tile@1 shared_cluster %$map) 1)",
        told("bulk", "Object(&bar@1 shared_cluster)", "0 1 2", "bytes_of=1 "),
    ],
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [map, {%r0}], [tile];": [
        "UndefinedIf(the coordinates of cp.async.bulk.tensor to .global are not negative lt.s32(%r0, 0))",
        BULK,
        MAP_READ.format("map", f" {IN_GROUP}"),
        f"+ Gather({SOURCE} BoxTile(&tile shared_cta %$map) {IN_GROUP})",
        f"+ Scatter({WRITTEN} Box(%$map [%r0] False) 1 {IN_GROUP})",
    ],
    "cp.reduce.async.bulk.tensor.1d.global.shared::cta.min.bulk_group [map, {0}], [tile];": [
        "Issue(bulk_reduction)",
        MAP_READ.format("map", f" {IN_GROUP}"),
        f"+ Gather(Access(read async bulk_reduction asynchronous source) BoxTile(&tile shared_cta %$map) {IN_GROUP})",
        "+ Update(Access(read relaxed gpu async bulk_reduction rmw asynchronous) "
        "Access(write relaxed gpu async bulk_reduction rmw asynchronous) "
        f"Box(%$map [0] False scalars) 1 min b32 {IN_GROUP})",
    ],
    "cp.async.bulk.prefetch.L2.global [src], 32;": [],
    "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [map, {0}];": [],
    "applypriority.async.bulk.tensor.1d.global.bulk_group.tile.L2::evict_normal [map, {0}];": [],
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [gmap], [smap], 128;": [
        "Read([$map] TensorMapAt(&smap shared_cta) Access(read) type=b1024)",
        "Write([%$map] TensorMapAt(&gmap global) Access(write))",
        "Emit(ProxyFence(tensormap release gpu))",
    ],
}


REPLACE = "tensormap.replace.tile"
REPLACED = {
    f"{REPLACE}.rank.shared::cta.b1024.b32 [smap], %r0;": [  # "ones less than the desired rank"
        "Read([$map] TensorMapAt(&smap shared_cta) Access(read) type=b1024)",
        "Write([insert 64 8.b1024(%$map, add.u32(%r0, 1))] TensorMapAt(&smap shared_cta) Access(write))",
    ],
    f"{REPLACE}.element_stride.global.b1024.b32 [gmap], 0, %r0;": [
        "Unmodelled(a tensor map with another element_stride than 1 ne.u32(%r0, 1))",
        "Read([$map] TensorMapAt(&gmap global) Access(read) type=b1024)",
        "Write([insert 608 8.b1024(%$map, sub.u32(%r0, 1))] TensorMapAt(&gmap global) Access(write))",
    ],
}

CP_SOURCE, CP_WRITTEN = "Access(read cp_async asynchronous source)", "Access(write cp_async asynchronous)"


def cp_async(size: int, kept: str = "", before: tuple[str, ...] = ()) -> list[str]:
    """A copy of that many bytes, aligned to their number."""
    at = "" if size == 16 else f" align={size}"
    return [
        *before,
        "Issue(cp_async)",
        f"+ Gather({CP_SOURCE} Chunk(&src global {size}{at}{kept}) tracks={{cp_async}})",
        f"+ Scatter({CP_WRITTEN} Chunk(&tile shared_cta {size}{at}) 0 tracks={{cp_async}})",
    ]


BEYOND = "UndefinedIf(src-size of cp.async is above cp-size 8 gt.u32({0}, 8))"
IGNORED = "selp.u32(0, 8, {})"
CP = "cp.async.ca.shared.global [tile], [src]"
COPIED_IN_PLACE = {
    "cp.async.cg.shared::cta.global [tile], [src], 16;": cp_async(16),
    f"{CP}, 4;": cp_async(4),
    f"{CP}, 8, 3;": cp_async(8, " kept=3"),
    f"{CP}, 8, %r0;": cp_async(8, " kept=%r0", (BEYOND.format("%r0"),)),
    f"setp.eq.u32 %i, %r0, 0; {CP}, 8, %i;": cp_async(
        8, f" kept={IGNORED.format('%i')}", ("Assign(i eq.u32(%r0, 0))", BEYOND.format(IGNORED.format("%i")))
    ),
    f"{CP}, 8, !%i;": cp_async(
        8, f" kept={IGNORED.format('eq.s64(%i, 0)')}", (BEYOND.format(IGNORED.format("eq.s64(%i, 0)")),)
    ),
    "cp.async.mbarrier.arrive.noinc.b64 [bar];": [
        "Issue(cp_async)",
        f"+ SignalPart(Signal(arrive cta cp_async) {OWN} cp_async)",
    ],
    "cp.async.mbarrier.arrive.shared.b64 [bar];": [
        f"OnObject(Mbarrier(pending relaxed cta) {OWN} count=1)",
        "Issue(cp_async)",
        f"+ SignalPart(Signal(arrive cta cp_async) {OWN} cp_async)",
    ],
}

ST, RED = "st_async asynchronous", "st_async rmw asynchronous"
REMOTE = "shared::cluster.mbarrier::complete_tx::bytes"
STORED = {
    f"st.async.{REMOTE}.b32 [tile@cta1+4], 1, [bar@cta1];": [
        "Issue(st_async)",
        f"+ AsyncWrite(Access(write {ST}) Elements(&tile+4@1 shared_cluster size=4) [1])",
        told("st_async", "Object(&bar@1 shared_cluster)", "0", "bytes=4 "),
    ],
    f"st.async.weak.{REMOTE}.v2.b64 [%rd0], {{%rd2, 5}}, [%rd1];": [
        "UndefinedIf(st.async to one CTA, and its mbarrier object in another "
        "ne.u64(sub.u64(shr.u64(%rd0, 24), 0), sub.u64(shr.u64(%rd1, 24), 0)))",
        "Issue(st_async)",
        f"+ AsyncWrite(Access(write {ST}) Elements(%rd0 shared_cluster size=8 count=2) [cvt.b64(%rd2) 5])",
        told("st_async", "Object(%rd1 shared_cluster)", "0", "bytes=16 "),
    ],
    "st.async.release.gpu.global.u32 [x], 1;": [
        "Issue(st_async release gpu)",
        f"+ AsyncWrite(Access(write relaxed gpu {ST}) Elements(&x global size=4) [1])",
    ],
    "st.async.mmio.release.sys.global.u8 [x], 1;": [
        "Issue(st_async release sys)",
        f"+ AsyncWrite(Access(write relaxed sys {ST} spelt=mmio) Elements(&x global size=1) [1])",
    ],
    f"red.async.relaxed.cluster.{REMOTE}.add.u32 [tile@cta1], %r0, [bar@cta1];": [
        "Issue(st_async)",
        f"+ AsyncRead(Access(read relaxed cluster {RED}) Elements(&tile@1 shared_other size=4) [$0])",
        f"+ AsyncWrite(Access(write relaxed cluster {RED}) Elements(&tile@1 shared_other size=4) "
        "[add.u32(%$0, cvt.u32(%r0))] rmw)",
        told("st_async", "Object(&bar@1 shared_cluster)", "0 1", "bytes=4 "),
    ],
    "red.async.release.sys.global.add.u64 [a], 1;": [
        "Issue(st_async release sys)",
        f"+ AsyncRead(Access(read relaxed sys {RED}) Elements(&a global size=8) [$0])",
        f"+ AsyncWrite(Access(write relaxed sys {RED}) Elements(&a global size=8) [add.u64(%$0, 1)] rmw)",
    ],
}

GROUPS = {
    "cp.async.commit_group;": ["CommitGroup(cp_async)"],
    "cp.async.bulk.commit_group;": ["CommitGroup(bulk)"],
    "cp.async.wait_group 1;": ["WaitForGroups(GroupWait(cp_async) cp_async pending=1)"],
    "cp.async.bulk.wait_group 0;": ["WaitForGroups(GroupWait(bulk) bulk pending=0)"],
    "cp.async.bulk.wait_group.read 1;": ["WaitForGroups(GroupWait(bulk) bulk pending=1 sources_only)"],
    "cp.async.wait_all;": ["CommitGroup(cp_async)", "WaitForGroups(GroupWait(cp_async) cp_async pending=0)"],
}

FENCES = {
    "fence.proxy.async;": "ProxyFence(async)",
    "membar.proxy.async;": "ProxyFence(async)",
    "fence.proxy.async.global;": "ProxyFence(async global)",
    "fence.proxy.async.shared::cta;": "ProxyFence(async own_shared)",
    "fence.proxy.async.shared::cluster;": "ProxyFence(async shared)",
    "fence.release.sync_restrict::shared::cta.cluster;": "Fence(release cluster own_shared)",
    "fence.acquire.sync_restrict::shared::cluster.cluster;": "Fence(acquire cluster shared)",
    "fence.mbarrier_init.release.cluster;": "Fence(release cluster init)",
    "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;": (
        "ProxyFence(async release cluster own_shared restricted)"
    ),
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;": (
        "ProxyFence(async acquire cluster shared restricted)"
    ),
    "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster;": (
        "ProxyFence(async release cluster own_reads restricted)"
    ),
    "fence.proxy.alias.release.sys;": "ProxyFence(- release sys)",
    "fence.proxy.alias.acquire.sys;": "ProxyFence(- acquire sys)",
    "fence.proxy.tensormap::generic.release.gpu;": "ProxyFence(tensormap release gpu)",
    "fence.proxy.tensormap::generic.acquire.gpu [gmap], 128;": (
        "ProxyFence(tensormap acquire gpu range) address=&gmap bytes=128"
    ),
}

RESPONSE, LATER = "Access(write async try_cancel asynchronous)", "Signal(complete_tx cluster try_cancel)"
CANCEL, QUERY = "clusterlaunchcontrol.try_cancel.async", "clusterlaunchcontrol.query_cancel"
LAUNCH = {
    f"{CANCEL}.mbarrier::complete_tx::bytes.b128 [response], [bar];": [
        "Issue(try_cancel)",
        f"+ Respond({RESPONSE} Chunk(&response shared_cta 16) 1)",
        f"+ SignalPart({LATER} {OWN} bytes=16 of=[0])",
    ],
    f"{CANCEL}.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [response], [bar];": [
        "Issue(try_cancel)",
        f"+ Respond({RESPONSE} Chunk(&response@0 shared_cluster 16) 1)",
        f"+ Respond({RESPONSE} Chunk(&response@1 shared_cluster 16) 1 like=0)",
        f"+ SignalPart({LATER} Object(&bar@0 shared_cluster) bytes=16 of=[0])",
        f"+ SignalPart({LATER} Object(&bar@1 shared_cluster) bytes=16 of=[1])",
    ],
    f"{QUERY}.is_canceled.pred.b128 %p, %q0;": ["Assign(p ne.b64(%q0, 0))"],
    f"{QUERY}.get_first_ctaid.v4.b32.b128 {{%r0, %r1, _, _}}, %q0;": [
        REFUSED,
        "Assign(r0 sub.u32(%q0, 1))",
        "Assign(r1 0)",
    ],
    f"{QUERY}.get_first_ctaid::x.b32.b128 %r0, %q0;": [REFUSED, "Assign(r0 sub.u32(%q0, 1))"],
    f"{QUERY}.get_first_ctaid::y.b32.b128 %r0, %q0;": [REFUSED, "Assign(r0 0)"],
    f"{QUERY}.get_first_ctaid::z.b32.b128 %r0, %q0;": [REFUSED, "Assign(r0 0)"],
}

NO_SHARED = "UndefinedIf({} takes an address in shared memory ge.u64({}, 68719476736))"
MAPPED = "or.u64(and.u64({0}, 16777215), shl.u64(add.u64({1}, 0), 24))"  # shared memory is 2^24 bytes for each CTA
CLUSTER = {
    "mapa.shared::cluster.u32 %r0, s, 1;": ["Assign(r0 &s@1)"],
    "mapa.shared::cluster.u32 %r0, tile+16, 1;": ["Assign(r0 &tile+16@1)"],
    "mapa.u64 %rd0, %rd1, 1;": [NO_SHARED.format("mapa", "%rd1"), f"Assign(rd0 {MAPPED.format('%rd1', 1)})"],
    "mapa.u64 %rd0, s, %r0;": [f"Assign(rd0 {MAPPED.format('&s', '%r0')})"],
    "getctarank.shared::cluster.u32 %r0, %rd0;": [
        NO_SHARED.format("getctarank", "%rd0"),
        "Assign(r0 sub.u64(shr.u64(%rd0, 24), 0))",
    ],
    f"elect.sync {PAIR}, 0xffffffff;": ["Assign(p 1)"],
    "elect.sync %r0|%p, -1;": ["Assign(r0 0)", "Assign(p 1)"],
}

NAMES_BAR = "and.u64(shr.u64(&bar, 3), 33554431)"
STATE = f"or.u64(%$phase, shl.u64({NAMES_BAR}, 39))"
STATES = {
    "mbarrier.arrive.shared.b64 %rd0, [bar], 2;": [
        f"OnObject(Mbarrier(arrive release cta unscoped) {OWN} count=2 register=$phase)",
        f"Assign(rd0 {STATE})",
    ],
    "mbarrier.arrive.expect_tx.b64 %rd0, [bar], 32;": [
        f"OnObject(Mbarrier(arrive release cta unscoped) {ANYWHERE} count=1 bytes=32 register=$phase)",
        f"Assign(rd0 {STATE})",
    ],
    "mbarrier.arrive.noComplete.b64 %rd0, [bar], 2;": [
        f"OnObject(Mbarrier(arrive release cta unscoped) {ANYWHERE} count=2 register=$phase no_complete)",
        f"Assign(rd0 or.u64({STATE}, 274877906944))",
    ],
    "mbarrier.test_wait.b64 %p, [bar], %rd0;": [
        f"UndefinedIf(the state was returned by no arrive on this object ne.u64(shr.u64(%rd0, 39), {NAMES_BAR}))",
        f"OnObject(Mbarrier(test acquire cta unscoped) {OWN} register=p state=and.u64(%rd0, 262143))",
    ],
    "mbarrier.check_layout.layout::v1.shared::cta.b64 %p, [bar];": [
        f"OnObject(Mbarrier(expect_tx relaxed cta unscoped) {OWN} bytes=0)",
        "Assign(p 0)",
    ],
    "mbarrier.pending_count.b64 %r0, %rd0;": [
        "UndefinedIf(mbarrier.pending_count takes the state of an arrive with .noComplete "
        "eq.u64(and.u64(%rd0, 274877906944), 0))",
        "Assign(r0 and.u64(shr.u64(%rd0, 18), 1048575))",
    ],
}

MULTICAST = "shared::cluster.multicast::cluster::32b.b64"
OUTSIDE = "takes an address in .shared::cluster memory"
TO_BOTH = [
    "OnObject(Mbarrier(arrive release cluster) Object(&bar@0 shared_cluster) count=1)",
    "OnObject(Mbarrier(arrive release cluster) Object(&bar@1 shared_cluster) count=1 beside)",
]
CHOSEN = [
    "OnObject(Mbarrier(complete_tx relaxed cta unscoped) Object(&bar@0 shared_cluster) bytes=16 when=and.u32(%r1, 1))",
    "OnObject(Mbarrier(complete_tx relaxed cta unscoped) Object(&bar@1 shared_cluster) bytes=16 "
    "when=and.u32(%r1, 2) beside)",
]
MULTICASTS = {
    f"mbarrier.arrive.release.cluster.{MULTICAST} _, [bar], 3;": TO_BOTH,
    f"mbarrier.arrive.release.cluster.{MULTICAST} _, [bar@cta1], 3;": TO_BOTH,
    f"mbarrier.arrive_drop.expect_tx.relaxed.cluster.{MULTICAST} _, [bar], 32, 2;": [
        "OnObject(Mbarrier(arrive relaxed cluster) Object(&bar@1 shared_cluster) count=1 bytes=32 drop)"
    ],
    f"mbarrier.complete_tx.{MULTICAST} [bar], 16, %r1;": [
        "Unmodelled(a CTA mask names a CTA that has no thread in the test and.u32(%r1, 4294967292))",
        *CHOSEN,
    ],
}

WORKED_OUT: dict[str, list[str]] = {
    **MULTICASTS,
    **{line: [f"OnObject({step})"] for line, step in OBJECTS.items()},
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], %r0;": [
        "UndefinedIf(a transaction count is from 0 to 1048575 gt.u32(%r0, 1048575))",
        f"OnObject(Mbarrier(expect_tx relaxed cta) {OWN} bytes=%r0)",
    ],
    "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p, [%rd1+8], %r1, 1000;": [
        "UndefinedIf(a phase parity is from 0 to 1 gt.u32(%r1, 1))",
        "OnObject(Mbarrier(test acquire cta) Object(add.u64(%rd1, 8) shared_cta) register=p parity=%r1)",
    ],
    "mbarrier.init.b64 [bar], %r0;": [
        "UndefinedIf(the count of mbarrier.init is from 1 to 1048575 gt.u32(sub.u32(%r0, 1), 1048574))",
        f"OnObject(Mbarrier(init) {OWN} count=%r0)",
    ],
    "mbarrier.arrive.b64 _, [bar], %r0;": [
        "UndefinedIf(the count of an arrive is from 1 to 1048575 gt.u32(sub.u32(%r0, 1), 1048574))",
        f"OnObject(Mbarrier(arrive release cta unscoped) {ANYWHERE} count=%r0)",
    ],
    **STATES,
    **COPIED,
    **TENSOR,
    **REPLACED,
    **COPIED_IN_PLACE,
    **STORED,
    **GROUPS,
    **{line: [f"Emit({label})"] for line, label in FENCES.items()},
    **LAUNCH,
    **CLUSTER,
}


@pytest.mark.parametrize("line", WORKED_OUT)
def test_steps(line: str) -> None:
    assert shown(ops(blocks(line))) == WORKED_OUT[line]
