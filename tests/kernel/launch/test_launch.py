"""Launch descriptions: what is taken, what is refused, and the template of a signature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.kernel.samples import HEAD, entry, launch, module

from memmodel.errors import InputError
from memmodel.kernel.launch import parse_launch, read_launch, schema
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.machine.regions.maps import Tile, read_map
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

GOOD: dict[str, Any] = {"grid": [1, 1, 1], "block": [32, 1, 1]}
MAP = {"param": "p", "address": 4096, "element_bytes": 4, "dims": [64], "strides_bytes": [], "box": [32]}
FIELD = {"offset": 0, "type": "u32", "value": 1}
POINTER = {"name": "p", "type": "ptr", "address": "0x1000", "bytes": 64}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"block": [1025, 1, 1]}, "at most 1024 threads"),
        ({"grid": [3, 1, 1], "cluster": [2, 1, 1]}, "no multiple of the cluster"),
        ({"params": [{"name": "x", "type": "ptr"}]}, "has an address"),
        ({"params": [{"name": "x", "type": "u31", "value": 1}]}, "is no type"),
        ({"params": [{"name": "x", "type": "bytes", "hex": "00", "fields": [FIELD]}]}, "in place of hex"),
        ({"params": [{"name": "x", "type": "u32", "value": 1.5}]}, "whole number"),
        ({"params": [{"name": "x", "type": "bytes", "hex": "0g"}]}, "hex"),
        ({"params": [POINTER | {"hex": "00", "init": "zero"}]}, "not by two"),
        ({"buffers": [{"address": 4096, "bytes": 2, "hex": "000102"}]}, "longer than the 2 bytes"),
        ({"params": [{"name": "x", "type": "u32", "value": 1, "file": "x"}]}, "no ptr"),
        ({"colour": 1}, "colour"),
        ({"tensormaps": [MAP | {"swizzle": 3}]}, "3 is no swizzle: one has 0, 32, 64, 96, 128 bytes"),
        ({"tensormaps": [MAP | {"swizzle": True}]}, "True is no swizzle"),
        ({"tensormaps": [MAP | {"swizzle": "128B_ATOM_32B"}]}, "or is called none, 32B"),
        ({"grid": [0, 1, 1]}, "grid"),
    ],
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_launch({**GOOD, **change})
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("swizzle", "size"),
    [
        (0, 0),
        (64, 64),
        ("none", 0),
        ("128B", 128),
        ("CU_TENSOR_MAP_SWIZZLE_32B", 32),
        ("cu_tensor_map_swizzle_64b", 64),
    ],
)
def test_a_swizzle_has_bytes_or_a_name(swizzle: object, size: int) -> None:
    assert parse_launch({**GOOD, "tensormaps": [MAP | {"swizzle": swizzle}]}).tensormaps[0].swizzle == size


def test_a_structure_has_fields_and_what_no_field_says_is_unknown() -> None:
    text = HEAD + ".entry e(.param .align 8 .b8 c[24], .param .u32 n) { ret; }"
    read = parse_module(Source("e.ptx", text))
    buffer = {"offset": 8, "name": "c+8", "type": "ptr", "address": 4096, "bytes": 64, "init": "iota"}
    struct = {"name": "c", "type": "bytes", "fields": [FIELD, buffer]}
    made = parse_launch(GOOD | {"params": [struct, {"name": "n", "type": "u32", "value": None}]})
    memory = DeviceMemory(read, read.functions["e"], made)
    loaded = [memory.params.load(at, size) for at, size in ((0, 4), (4, 4), (8, 8), (16, 8), (24, 4))]
    assert loaded == [1, None, 4096, None, None]
    block = memory.find(4100)
    assert block is not None and block.load(4, 4) == 1


def test_schema_names_the_fields() -> None:
    assert {"grid", "block", "cluster", "params", "tensormaps"} <= set(schema()["$defs"]["Launch"]["properties"])


def test_memory_holds_parameters_and_contents() -> None:
    read = module("")
    memory = DeviceMemory(read, entry(read), launch(init="iota"))
    assert memory.params.load(0, 8) == 0x100000000
    block = memory.find(0x100000010)
    assert block is not None and block.load(0x10, 4) == 4
    assert memory.find(0x100000000 - 1) is None
    block.store(0x10, 1, None)
    assert block.load(0x10, 4) is None and block.load(0x11, 1) == 0


def test_contents_in_hex_and_in_a_file(tmp_path: Path) -> None:
    """The first bytes of a buffer; the others are unknown. A file is seen from the launch description."""
    (tmp_path / "data.bin").write_bytes(bytes(range(8)))
    own = {"name": "q", "address": 1 << 33, "bytes": 64, "hex": "0a0b"}
    given = GOOD | {"params": [POINTER | {"file": "data.bin"}], "buffers": [own]}
    (tmp_path / "l.json").write_text(json.dumps(given))
    read, made = module(""), read_launch(tmp_path / "l.json")
    memory = DeviceMemory(read, entry(read), made)
    one, other = memory.find(0x1000), memory.find(1 << 33)
    assert one is not None and one.load(4, 4) == 0x07060504 and one.load(5, 4) is None
    assert other is not None and other.load(0, 2) == 0x0B0A and other.load(2, 1) is None
    assert list(made.assumptions) == ["the contents that the launch gives to p, q"]
    for content, words in ((b"0" * 65, "has more than the 64 bytes"), (None, "cannot be read")):
        (tmp_path / "data.bin").unlink()
        if content is not None:
            (tmp_path / "data.bin").write_bytes(content)
        with pytest.raises(InputError, match=words):
            DeviceMemory(read, entry(read), made)


@pytest.mark.parametrize("elsewhere", ["/etc/passwd", "../data.bin", "link/data.bin", "a\0b", ""])
def test_contents_stay_below_the_folder_of_the_launch(tmp_path: Path, elsewhere: str) -> None:
    (tmp_path / "data.bin").write_bytes(b"0")
    home = tmp_path / "home"
    home.mkdir()
    (home / "link").symlink_to(tmp_path)
    (home / "l.json").write_text(json.dumps(GOOD | {"params": [POINTER | {"file": elsewhere}]}))
    with pytest.raises(InputError, match=r"below the folder|a directory"):
        made = read_launch(home / "l.json")
        DeviceMemory(module(""), entry(module("")), made)


def test_overlapping_buffers_are_refused() -> None:
    read = module("")
    with pytest.raises(InputError, match="overlap") as error:
        DeviceMemory(
            read, entry(read), parse_launch({**GOOD, "params": [POINTER], "buffers": [{"address": 4096, "bytes": 8}]})
        )
    assert error.value.hint is not None and '"u64"' in error.value.hint


@pytest.mark.parametrize(
    ("holder", "name"),
    [(".const .align 64 .b8 map[128];", "map"), (".global .align 64 .b8 map[128];", "map"), ("", "p"), ("", "far")],
)
def test_tensor_maps_in_memory(holder: str, name: str) -> None:
    """A map may lie in a variable of the module, where a parameter points to, or in a buffer."""
    read = parse_module(Source("k.ptx", f"{HEAD}{holder}\n.visible .entry k(.param .u64 k_0) {{ ret; }}"))
    spec = {"param": name, "address": 4096, "element_bytes": 4, "dims": [64], "strides_bytes": [], "box": [32]}
    given = {
        "grid": [1, 1, 1],
        "block": [32, 1, 1],
        "params": [{"name": "p", "type": "ptr", "address": 1 << 32, "bytes": 128}],
        "buffers": [{"name": "far", "address": 1 << 33, "bytes": 256}],
        "tensormaps": [spec],
    }
    memory = DeviceMemory(read, read.functions["k"], parse_launch(given))
    block = next(one for one in memory.blocks if one.instance.name == name)
    number = block.load(0, 128)
    tile = None if number is None else read_map(number)
    assert isinstance(tile, Tile) and tile.map.sizes == (64,) and tile.size == 128
    with pytest.raises(InputError, match="no variable or buffer"):
        DeviceMemory(read, read.functions["k"], parse_launch(given | {"tensormaps": [spec | {"param": "none"}]}))


@pytest.mark.parametrize(
    ("directive", "block", "cluster", "contradicts"),
    [
        (".reqntid 64", [64, 1, 1], [1, 1, 1], False),
        (".reqntid 64", [32, 1, 1], [1, 1, 1], True),
        (".reqntid 32, 2", [64, 1, 1], [1, 1, 1], True),
        (".maxntid 64", [32, 2, 1], [1, 1, 1], False),
        (".maxntid 64", [96, 1, 1], [1, 1, 1], True),
        (".reqnctapercluster 2", [32, 1, 1], [2, 1, 1], False),
        (".reqnctapercluster 2", [32, 1, 1], [1, 1, 1], True),
        (".maxclusterrank 2", [32, 1, 1], [2, 1, 1], False),
        (".maxclusterrank 2", [32, 1, 1], [4, 1, 1], True),
    ],
)
def test_a_launch_that_contradicts_its_entry(
    directive: str, block: list[int], cluster: list[int], contradicts: bool
) -> None:
    read = parse_module(Source("k.ptx", HEAD + f".visible .entry e() {directive} {{ ret; }}"))
    description = parse_launch({"grid": [4, 1, 1], "block": block, "cluster": cluster})
    if not contradicts:
        DeviceMemory(read, read.functions["e"], description)
        return
    with pytest.raises(InputError, match=directive.split()[0].removeprefix(".")):
        DeviceMemory(read, read.functions["e"], description)


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"grid": [1 << 31, 1, 1]}, "larger than"),
        ({"grid": [1, 65536, 1]}, "larger than"),
        ({"grid": [1 << 31] * 3}, "larger than"),
        ({"block": [1, 1, 65]}, "larger than"),
        ({"grid": [17, 1, 1], "cluster": [17, 1, 1]}, "at most 16 CTAs, not 17"),
        ({"buffers": [{"address": hex((1 << 64) - 16), "bytes": 17}]}, "beyond the last address"),
        ({"params": [{"type": "ptr", "address": hex((1 << 64) - 1), "bytes": 2}]}, "beyond the last address"),
    ],
)
def test_what_no_launch_has(changed: dict[str, object], message: str) -> None:
    """CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""
    with pytest.raises(InputError, match=message):
        parse_launch({"grid": [1, 1, 1], "block": [32, 1, 1], **changed}, "l.json")


def test_the_largest_launch() -> None:
    parse_launch({"grid": [(1 << 31) - 1, 65535, 65535], "block": [1, 1, 64]})
    parse_launch({"grid": [16, 1, 1], "block": [1, 1, 1], "cluster": [16, 1, 1]})
    parse_launch({"grid": [1, 1, 1], "block": [1, 1, 1], "buffers": [{"address": hex((1 << 64) - 16), "bytes": 16}]})


@pytest.mark.parametrize("key", ["file", "name"])
def test_half_a_character_in_any_text(key: str, tmp_path) -> None:
    buffer = {"address": 16, "bytes": 16, key: "a\ud800b"}
    (tmp_path / "l.json").write_text(json.dumps({"grid": [1, 1, 1], "block": [1, 1, 1], "buffers": [buffer]}))
    with pytest.raises(InputError, match=r"l\.json: half of a character"):
        read_launch(tmp_path / "l.json")
    buffer[key] = "pair \U0001f600"
    (tmp_path / "l.json").write_text(json.dumps({"grid": [1, 1, 1], "block": [1, 1, 1], "buffers": [buffer]}))
    assert read_launch(tmp_path / "l.json").buffers


def test_what_is_wrong_with_a_launch_has_its_file(tmp_path) -> None:
    from helpers import fuzz

    from memmodel.kernel.check import check_kernel

    (tmp_path / "k.ptx").write_text(fuzz.KERNEL)
    (tmp_path / "l.json").write_text(json.dumps({**fuzz.LAUNCH, "params": 2 * [POINTER]}))
    with pytest.raises(InputError, match=r"l\.json: k has 1 parameter; the launch gives 2"):
        check_kernel(tmp_path / "k.ptx", tmp_path / "l.json")


def test_a_description_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "l.json"
    file.write_text(json.dumps(GOOD))
    size = len(json.dumps(GOOD))
    monkeypatch.setattr("memmodel.kernel.launch.MAX_TEXT", size)
    assert read_launch(file).block == (32, 1, 1)
    monkeypatch.setattr("memmodel.kernel.launch.MAX_TEXT", size - 1)
    with pytest.raises(InputError, match=f"larger than {size - 1} bytes"):
        read_launch(file)
