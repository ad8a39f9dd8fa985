"""`check_ptx`: what a program hands to a kernel becomes the launch that it is, whoever made the arrays."""

from __future__ import annotations

import array
import ctypes
from dataclasses import dataclass, field
from typing import Any

import pytest
from helpers.kernel.samples import HEAD
from helpers.places import ROOT

import memmodel
from memmodel.errors import InputError
from memmodel.kernel.arguments.arrays import array_facts
from memmodel.kernel.arguments.element_types import contiguous
from memmodel.kernel.arguments.launches import launch_of
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.launch import Launch
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source
from memmodel.testing import assert_clean

FIRST = ROOT / "docs" / "examples" / "first"
F = memmodel.FakeArray


def signature(*params: str) -> str:
    """A kernel that does nothing, with these types of parameters."""
    listed = ", ".join(f".param {text} p{number}" for number, text in enumerate(params))
    return f"{HEAD}.visible .entry k({listed}) .reqntid 32 {{ ret; }}"


def launched(text: str, *args: object, **options: Any) -> Launch:
    return launch_of(entry_of(parse_module(Source("k.ptx", text)), "k"), 1, args, **options)


@dataclass
class CudaArray:
    """What a library of device arrays shows of an array."""

    shape: tuple[int, ...]
    address: int
    strides: tuple[int, ...] | None = None

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {
            "shape": self.shape, "typestr": "<f4", "data": (self.address, False), "strides": self.strides, "version": 3,
        }  # fmt: skip


@dataclass
class Storage:
    address: int
    size: int

    def data_ptr(self) -> int:
        return self.address

    def nbytes(self) -> int:
        return self.size


@dataclass
class Tensor:
    """A tensor as PyTorch has it."""

    shape: tuple[int, ...]
    storage: Storage
    offset: int = 0
    strides: tuple[int, ...] = ()
    dtype: str = "torch.bfloat16"

    def data_ptr(self) -> int:
        return self.storage.address + self.offset if self.storage.address else 0

    def element_size(self) -> int:
        return 2

    def stride(self) -> tuple[int, ...]:
        return self.strides or contiguous(self.shape)

    def untyped_storage(self) -> Storage:
        return self.storage

    @property
    def __cuda_array_interface__(self) -> object:
        raise RuntimeError("a tensor that needs a gradient says so")


@dataclass
class Capsule:
    """An array with DLPack only. The capsule is made by hand, as NumPy need not be there."""

    numbers: array.array[float]
    shape: tuple[int, ...]
    asked: list[dict[str, object]] = field(default_factory=list)
    kept: list[object] = field(default_factory=list)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **options: object) -> object:
        from memmodel.kernel.arguments.arrays import _DLTensor

        self.asked.append(options)
        sizes = (ctypes.c_int64 * len(self.shape))(*self.shape)
        tensor = _DLTensor(
            self.numbers.buffer_info()[0] if self.numbers else None, 2, 0, len(self.shape), 2, 32, 1, sizes, None, 4
        )
        self.kept += [sizes, tensor]
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(tensor), b"dltensor", None)


POINTERS = signature(".u64 .ptr .global", ".u64 .ptr .global")


def test_arrays_of_every_library_have_their_bytes() -> None:
    numbers = array.array("f", [0.0] * 64)
    capsule = Capsule(numbers, (4, 8))
    sizes = {
        "fake": (F((4, 8), "fp16"), 64),
        "cuda": (CudaArray((4, 8), 0x7000_0000_0100), 128),
        "torch": (Tensor((4, 8), Storage(0x7000_0000_0000, 1024), 256), 1024),
        "dlpack": (capsule, 128),
    }
    for name, (value, size) in sizes.items():
        launch = launched(POINTERS, value, None)
        assert [buffer.bytes for buffer in launch.buffers] == [size], name
        assert launch.params[1].value == 0
    launch = launched(POINTERS, sizes["torch"][0], None)
    assert launch.params[0].value == launch.buffers[0].address + 256
    assert capsule.asked and all(options == {"stream": -1} for options in capsule.asked), "no stream waits"
    nowhere = [Capsule(array.array("f"), (4, 8)) for _ in range(2)]
    assert [buffer.bytes for buffer in launched(POINTERS, *nowhere).buffers] == [128, 128], "they share nothing"


def test_numpy_where_it_is_installed() -> None:
    numpy = pytest.importorskip("numpy")
    matrix = numpy.zeros((16, 32), numpy.float16)
    launch = launched(POINTERS, matrix, matrix.T[::-1])
    assert [buffer.bytes for buffer in launch.buffers] == [1024]
    assert int(launch.params[1].value or 0) == int(launch.params[0].value or 0) + 31 * 2
    assert launched(signature(".u64"), numpy.int64(7)).params[0].value == 7


def test_arrays_that_share_memory_share_it_in_the_launch() -> None:
    """Otherwise a race between two views is none."""
    whole = CudaArray((1024,), 0x7000_0000_0100)
    part = CudaArray((512,), 0x7000_0000_0900)
    launch = launched(POINTERS, whole, part)
    (buffer,) = launch.buffers
    assert buffer.bytes == 4096 and buffer.name == "p0" and buffer.address % 4096 == 0x100
    assert [int(param.value or 0) - buffer.address for param in launch.params] == [0, 2048]
    storage = Storage(0x7000_0000_0000, 1 << 20)
    first, second = (Tensor((16,), storage, offset) for offset in (0, 4096))
    assert len(launched(POINTERS, first, second).buffers) == 1
    fake = F((16,))
    assert len(launched(POINTERS, fake, fake).buffers) == 1
    assert len(launched(POINTERS, fake, F((16,))).buffers) == 2


def test_equal_calls_are_equal_launches() -> None:
    """Verdicts are kept by it: where an allocator puts an array makes no difference, its alignment does."""
    there, elsewhere, odd = (CudaArray((64,), address) for address in (0x7000_0000_0000, 0x7100_0000_0000, 0x7000_0004))
    assert launched(POINTERS, there, None) == launched(POINTERS, elsewhere, None)
    assert launched(POINTERS, there, None) != launched(POINTERS, odd, None)


@pytest.mark.parametrize(
    ("shape", "strides", "size", "below"),
    [
        ((4, 8), None, 128, 0),
        ((4, 8), (0, 1), 32, 0),
        ((1 << 40,), (0,), 4, 0),
        ((4, 8), (8, -1), 128, 28),
        ((0, 8), None, 0, 0),
        ((), None, 4, 0),
    ],
)
def test_strides_say_what_an_array_covers(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int, below: int
) -> None:
    facts = array_facts(F(shape, "float32", strides))
    assert facts is not None
    assert (facts.bytes, facts.below) == (size, below)


def test_a_structure_of_eight_bytes_may_be_a_pointer() -> None:
    """The tensors of CuTe DSL whose shape is known are such structures."""
    launch = launched(signature(".align 8 .b8").replace("p0", "p0[8]"), F((64,)))
    assert launch.params[0].value == launch.buffers[0].address


def test_numbers_get_the_width_of_their_parameter() -> None:
    launch = launched(
        signature(".u32", ".u64", ".f32", ".u8", ".u32", ".f64"), -1, 1 << 40, 1, True, ctypes.c_int(5), 0.5
    )
    assert [(param.type, param.value) for param in launch.params] == [
        ("s32", -1), ("u64", 1 << 40), ("fp32", 1.0), ("u8", True), ("u32", 5), ("fp64", 0.5),
    ]  # fmt: skip


def test_tensor_maps_and_structures() -> None:
    tensor = F((128, 64), "bf16")
    tensor_map = memmodel.TiledMap(tensor, (64, 32), swizzle="64B")
    text = signature(".align 64 .b8", ".u64 .ptr .global").replace("p0", "p0[256]")
    launch = launched(text, memmodel.Struct(b"\1\2", {8: tensor, 128: tensor_map}), tensor_map)
    first, second = launch.tensormaps
    assert (first.dims, first.strides_bytes, first.box, first.swizzle) == ((64, 128), (128,), (32, 64), 64)
    assert (first.param, first.offset, second.param) == ("p0", 128, "p1_map")
    data = bytes.fromhex(launch.params[0].hex or "")
    assert len(data) == 256 and data[:2] == b"\1\2"
    assert int.from_bytes(data[8:16], "little") == first.address == launch.buffers[0].address


@pytest.mark.parametrize(
    ("text", "args", "options", "message"),
    [
        (signature(".u32"), (), {}, "k has 1 parameter, and args has 0"),
        (signature(".u32"), (1 << 40,), {}, "does not fit into a parameter of type u32"),
        (signature(".u32"), (F((4,)),), {}, "an array is handed to a parameter of type u32"),
        (signature(".u64"), (F((4,), "float4"),), {}, "no type of elements with whole bytes"),
        (signature(".u64"), (F((4,), "f32", (1, 1)),), {}, "shape"),
        (signature(".u64"), ("text",), {}, "a str cannot be handed to a u64"),
        (signature(".u64"), (object(),), {}, "a object cannot be handed to a u64"),
        (signature(".u64").replace(".reqntid 32", ""), (0,), {}, "does not say its block"),
        (signature(".u64"), (0,), {"block": 64}, "declares .reqntid 32"),
        (signature(".u64"), (0,), {"grid": "x"}, "grid: 'x' is not 1 to 3 numbers"),
        ("nonsense", (), {}, "<ptx>:1"),
    ],
)
def test_what_cannot_be_handed_over_is_refused_by_name(
    text: str, args: tuple[object, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        memmodel.check_ptx(text, args=args, **{"grid": 1, **options})


def test_contents_are_taken_only_where_they_are_given() -> None:
    numbers = memoryview(bytes(range(16)))

    class Host:
        __array_interface__ = {"shape": (16,), "typestr": "|u1", "data": (0x1000, False), "version": 3}  # noqa: RUF012

        def tobytes(self) -> bytes:
            return numbers.tobytes()

    assert launched(POINTERS, Host(), None).buffers[0].hex is None
    launch = launched(POINTERS, memmodel.Known(Host()), None)
    assert launch.buffers[0].hex == numbers.hex()
    assert launch.assumptions
    launch = launched(POINTERS, memmodel.Known(array.array("i", [1, 2])), None)
    assert launch.buffers[0].hex == array.array("i", [1, 2]).tobytes().hex()
    with pytest.raises(InputError, match="cannot be read"):
        launched(POINTERS, memmodel.Known(CudaArray((4,), 0x1000)), None)


# ---- from arguments to a verdict -----------------------------------------------------------------------------------


def test_a_path_as_text_is_refused_with_what_to_write() -> None:
    with pytest.raises(InputError, match="reads like the path of a file") as refused:
        memmodel.check_ptx("docs/gallery/drop.ptx", grid=1)
    assert "pathlib.Path" in refused.value.render()


def test_a_race_is_found_from_the_arguments_alone() -> None:
    args = [F((64,), "int32"), F((64,), "int32")]
    verdict = memmodel.check_ptx(FIRST / "reverse.ptx", grid=1, block=64, args=args)
    assert verdict.word == "findings"
    assert memmodel.explain_kernel(verdict).startswith("findings: ")
    text = (FIRST / "reverse-fixed.ptx").read_text()

    class Compiled:
        asm = {"ptx": text}  # noqa: RUF012

    for compiled in (text, Compiled()):
        assert assert_clean(compiled, args, 1, block=64).word == "clean"
    with pytest.raises(AssertionError, match="data-race"):
        assert_clean(FIRST / "reverse.ptx", args, 1, block=64)


def test_what_says_its_elements_and_its_sizes_is_an_array() -> None:
    """An abstract array has both, as its own attributes; what lacks one, or is the type of such arrays, is none."""

    def abstract(**said: object) -> object:
        return type("Abstract", (), said)()

    facts = array_facts(abstract(dtype="float32", shape=(4, 2)))
    assert facts is not None and (facts.shape, facts.strides, facts.element_bytes) == ((4, 2), (2, 1), 4)
    for other in (
        abstract(shape=(4, 2)),
        abstract(dtype=None, shape=(4, 2)),
        abstract(dtype="float32"),
        abstract(dtype="float32", shape=lambda: (4, 2)),
        abstract(dtype="float32", shape=3),
        type(abstract(dtype="float32", shape=(4, 2))),
    ):
        assert array_facts(other) is None
