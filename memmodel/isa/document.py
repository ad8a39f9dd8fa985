"""The instruction table as a page for people: docs/instructions.md.

In: the table. Out: Markdown. `python -m memmodel.isa.document > docs/instructions.md` renews the page.
"""

from __future__ import annotations

from memmodel.isa.refused import REFUSED
from memmodel.isa.rows.cases import Rule, either, terms
from memmodel.isa.rows.row import Row, Syntax
from memmodel.isa.rows.slots import NO_SUCH_SCOPE, Need, Slot
from memmodel.isa.table import FAMILIES
from memmodel.ptx.targets import Version, version_of

HEADER = """\
# Instructions

This page is written by `python -m memmodel.isa.document` from the table that the checker itself uses.

An instruction is spelled as PTX spells it. Braces mark what may be left out. The *column layout* leaves out types,
state spaces and brackets, and has a few words of its own (marked "columns"). Qualifiers of `ld`, `st`, `atom`, `red`,
`fence` and the barriers may stand in any order, as in the examples of the PTX ISA. Each entry says what events the
instruction makes, which version of PTX introduced it and which target architectures have it, what came later, and the
section of the PTX ISA that describes it.

`memmodel check --ptx-version 8.6 --target sm_90a FILE` (also `suite`, and `ptx` with a version) refuses the first word
that is younger than that version or that the target does not have, by name. `memmodel kernel` compares a module with
its own `.version` and `.target`, and notes such words: ptxas refuses the module, and what the words mean does not
depend on it. Where a page and ptxas name different versions or targets, this page has what the page says.

Values are integers. A value that is loaded, stored or computed is reduced to the type of the instruction; without a
type it is a signed 64-bit number. What division by zero gives PTX leaves open, so that a test that divides by zero is
undecided. The scopes are `.cta`, `.cluster`, `.gpu` and `.sys`; other names for them (`.gl`, `.device`, `.system`,
`.block`, and the compound `.cta::cluster`) are refused with the name that PTX uses. Cache operators, eviction
priorities and other hints are accepted and have no effect.

An address is a name, a name and an offset, or a register that holds any number; what lies there is looked up when the
instruction is executed. An address that is outside every object, misaligned, or outside the window of the state space
is undefined behaviour, and the thread ends there ([executions.md](executions.md#bad-addresses)). Special registers
that follow from where the test places its threads have their value (`%ctaid`, `%clusterid`, `%cluster_ctaid`,
`%cluster_nctaid`, `%cluster_ctarank`, `%cluster_nctarank`, `%is_explicit_cluster`); other special registers are
refused.

CTA barriers: a litmus thread is a warp of its own unless the test puts several into one warp, so the thread count
`b`, a multiple of 32 in PTX, says how many warps take part. The column layout has `a, resource, b` instead of `a, b`,
each but the first may be left out, and `b` counts litmus threads. The first `b` arrivals are one generation, and the
barrier is used again at once.

## How asynchronous instructions are seen

An asynchronous instruction is one event in program order, its *issue*, and further events that are not: reads and
writes that happen some time later, and *signals*, which are what the hardware does to an mbarrier object at the end.

- **Bytes.** A copy moves all its bytes, and its two ends need not have elements of one size. Addresses, sizes, tensor
  maps, coordinates, CTA masks and ranks may be registers that are known only when the test runs. A mask that names a
  CTA in which the test has no thread is refused if it is known beforehand, else it makes the answer undecided.
- **mbarrier objects** are declared initialised, `.shared .align 8 .b64 bar = mbarrier(2);`, or initialised by
  `mbarrier.init`. `.b64 bar[4] = mbarrier(1);` is an array of them. `[bar@cta1]` is the object of CTA 1 of the
  cluster; `mapa` computes such an address in a register.
- **Tensor maps** are declared with what they describe:
  `.const .align 64 .b8 map[128] = tensormap(x, {8, 2}, {16, 4});` is a map of `x` as a tensor of 4 rows of 16
  elements, copied in boxes of 2 rows of 8 (innermost dimension first). Without sizes the whole variable is one box.
  Coordinates count elements; what lies outside the tensor is read as zero and not written. A map is 128 bytes of
  memory like any others: `tensormap.replace` changes a field, and a copy through a map that was just replaced may
  still read the old one. `maps[256] = {tensormap(x), tensormap(y)};` is an array of two, and a register may hold the
  address of either. Maps with swizzling, interleaving and the like are not modelled.
- **Matrices.** A matrix descriptor is a 64-bit register that holds the address of the matrix (`mov.u64 %d, tile;`).
  The matrix is as many bytes as its shape says, or up to the next matrix of the test or the end of the variable where
  the test declares less. `wgmma` and `tcgen05.mma` compute D + A * B in integers, where a matrix counts as the sum of
  its declared elements; every register or column of D receives the same. Scale factors multiply A * B.
- **Matrices of a warp.** A litmus thread stands for the warp that executes an `ldmatrix` or `stmatrix`, and its address
  is that of the first row: the other rows follow, 16 bytes each, matrix by matrix. All of these bytes are touched. A
  register is that of lane 0. What `ldmatrix` loaded, `stmatrix` stores as it was in every lane; any other register
  holds one number in all lanes.
- **Tensor memory** is declared as `.tensor .b32 acc[4];`: 4 columns, one instance in every CTA, addressed by column:
  `[acc+1]` is the second one. Lanes are not modelled. `tcgen05.shift` moves the column after its address to its
  address. The k-th `tcgen05.alloc` of a CTA, in the order of the file, allocates the k-th `.tensor` variable; a test
  without one has them all from the start. `.shared .b32 slot = alloc(acc);` says of an alloc that leaves its address in
  `slot` that it allocates `acc`, so that a thread may allocate again what it has freed. Allocs of several threads of a
  CTA do not give the same memory.
- **CTA pairs.** With `.cta_group::2` an mma, cp or shift works in the CTAs 2n and 2n + 1 of the cluster, as far as
  the test has threads in both: each takes A and the accumulator of its own, and B of both (their sum). A multicast
  with `.cta_group::2` signals, in each pair of destinations, the CTA with the parity of the one in which the mbarrier
  operand lies.
- **Cluster launch control.** A request succeeds or fails; the test has both executions. The response is a number, 0
  for a request that failed; the k-th request of the file cancels the CTA k.
- **Grids.** Threads are in grid 0 unless their place says `grid 1`, which depends on grid 0 of its GPU and was launched
  so that it may begin early ([executions.md](executions.md#grids)).
- **Logical endpoints.** `e @ fabric aliases x;` declares an endpoint whose memory is `x`, and `[e, 16]` is the handle
  of its byte 16. An endpoint is an address of its own, and two endpoints of `x` are two. An operation succeeds or
  fails; the test has both executions. Where it fails, each 16 bytes were moved or not, and the report predicate of a
  test of its phase is set.
- **Multimem addresses.** `.global .u32 m = multimem(x, y);` points to `x` on one device and to `y` on another. It is a
  virtual address of its own: accesses through it are ordered with those through the names `x` and `y` only by way of a
  `fence.proxy.alias`.
"""


def markdown() -> str:
    """The whole page."""
    parts = [HEADER]
    for title, rows in FAMILIES:
        parts.append(f"## {title}\n")
        parts += [entry(row) for row in rows]
    parts.append("## Refused by name\n")
    parts.append("Each with the reason that the error gives. [mnemonics.md](mnemonics.md) has every instruction.\n")
    for reason in dict.fromkeys(REFUSED.values()):
        parts.append(f"- {', '.join(f'`{head}`' for head, why in REFUSED.items() if why == reason)}: {reason}.")
    return "\n".join(parts).rstrip() + "\n"


def entry(row: Row) -> str:
    """What the page says of one row."""
    heads = ", ".join(f"`{head}`" for head in row.heads)
    lines = [f"### {heads}\n", "```"]
    if not (row.modules and row.forms):
        lines += [_syntax(row, head) for head in row.heads]
        lines += [
            f"  .{slot.name} = {{ {', '.join(_word(slot, word) for word in _words(slot, row))} }}"
            for slot in row.slots
            if _set(slot, row)
        ]
    if row.forms and (row.modules or any(slot.modules for slot in row.slots)):
        lines += [] if row.modules else ["In compiled modules:"]
        lines += [_line(row, form) for form in row.forms]
    lines += ["```\n", f"- Events: {row.events}.", f"- Source: {row.source}.", f"- {_since(row)}."]
    lines += [f"- Illegal: {_text(rule.message, row, rule)} ({_text(rule.hint, row, rule)})." for rule in row.rules]
    refused: dict[tuple[str, str], list[str]] = {}
    for slot in row.slots:
        for word, reason in slot.refused.items() if slot.refused is not NO_SUCH_SCOPE else ():
            refused.setdefault(reason, []).append(f"`.{word}`")
    lines += [
        f"- Refused: {', '.join(w)}: {_text(why, row)} ({_text(cure, row)})." for (why, cure), w in refused.items()
    ]
    return "\n".join(lines) + "\n"


def _since(row: Row) -> str:
    if row.columns:
        return "Column layout only"
    later: dict[tuple[Version, str], list[str]] = {}
    for case, since in row.later.items():
        shown = _case(case, row)
        if shown:
            later.setdefault((version_of(since.version), since.targets), []).append(shown)
    first = f"Since PTX {row.since.version}, {row.since.targets}"
    lines = [f"{first}; compiled modules only" if row.modules else first]
    for (version, targets), cases in sorted(later.items()):
        named = f"PTX {version[0]}.{version[1]}, {targets}"
        lines.append(f"{named}: {', '.join(cases)}")
    return "; ".join(lines)


def _case(case: str, row: Row) -> str:
    """The words and operands of a case for people; empty if only modules have the words."""
    slots = {slot.name: slot for slot in row.slots}
    parts = []
    for term in terms(case):
        if term.negated:
            parts.append(f"without `.{term.slot}`")
        elif (slot := slots.get(term.slot)) is not None:
            words = [word for word in term.matching_words(slot) if word in slot.words]
            if not words:
                return ""
            parts.append(", ".join(f"`.{word}`" for word in words) if " " not in case else f"`.{either(words)}`")
        else:
            parts.append(", ".join(f"`{name}`" for name in term.words or (term.slot,)))
    return " with ".join(parts).replace(" with without ", " without ")


def _syntax(row: Row, head: str) -> str:
    words = []
    for slot in row.slots:
        if not _words(slot, row):
            continue
        text = f".{slot.name}" if _set(slot, row) else f".{_words(slot, row)[0]}"
        words.append("{" + text + "}" if slot.need is Need.OPTIONAL else text)
    return f"{head}{''.join(words)} {row.operand_text()}".rstrip() + ";"


def _line(row: Row, form: Syntax) -> str:
    """A syntax line of modules."""
    return f"{form.spelled(row.heads[0], row.slots)} {row.operand_text(form.operands)};"


def _words(slot: Slot, row: Row) -> tuple[str, ...]:
    return slot.words if row.forms else (*slot.words, *slot.modules)


def _set(slot: Slot, row: Row) -> bool:
    return len(_words(slot, row)) > 1


def _word(slot: Slot, word: str) -> str:
    if word in slot.modules:
        return f".{word} (modules)"
    return f".{word} (columns)" if word in slot.columns else f".{word}"


def _text(text: str, row: Row, rule: Rule | None = None) -> str:
    """A message with its placeholders spelled out: the head, and the words that a rule is about."""
    about = terms(rule.case) if rule else ()
    for slot in row.slots:
        words = next((term.matching_words(slot) for term in about if term.slot == slot.name and term.words), ())
        text = text.replace("{" + slot.name + "}", "|".join(words) or slot.name)
    return text.replace("{head}", row.heads[0])


if __name__ == "__main__":
    print(markdown(), end="")
