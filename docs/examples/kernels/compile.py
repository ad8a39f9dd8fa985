"""Compile the examples again: every .cu here as it is and with -DBROKEN, the Triton kernel, its broken copy; and the
kernels of docs/first-kernel.md.

pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl triton
python compile.py            # writes NAME.ptx and NAME-broken.ptx beside the sources; no GPU is needed
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
FIRST = HERE.parent / "first"
TARGETS = dict.fromkeys(("splitk", "scan", "last_block", "reverse", "reverse-fixed"), "sm_80")


def nvcc() -> Path:
    """The compiler that the pip packages brought."""
    spec = find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for found in sorted(Path(place).glob("*/bin/nvcc")):
            return found
    sys.exit("nvcc was not found: pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime")


def cuda(source: Path, *variants: tuple[str, str]) -> None:
    """One source, for each suffix of a file name with the flag that makes it."""
    compiler = nvcc()
    target = TARGETS.get(source.stem, "sm_90a")
    for suffix, flag in variants:
        out = source.with_name(f"{source.stem}{suffix}.ptx")
        flags = ["-ptx", "-lineinfo", "-O3", "-std=c++17", f"-arch={target}", *flag.split()]
        subprocess.run([str(compiler), *flags, source.name, "-o", out.name], cwd=source.parent, check=True)
        out.write_text(cleaned(out.read_text()))


def cleaned(text: str) -> str:
    """Without paths of the machine and without debugging data."""
    text = re.sub(r'(\.file\s+\d+ ")[^"]*/([^"/]+")', r"\1\2", text)
    text = re.sub(r"\n\s*\.section\s+\.debug[^{]*\{[^}]*\}", "", text)
    return re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)


def main() -> None:
    for source in sorted(HERE.glob("*.cu")):
        cuda(source, ("", ""), ("-broken", "-DBROKEN"))
    for source in sorted(FIRST.glob("*.cu")):
        cuda(source, ("", ""))
    if find_spec("triton"):
        sys.path.insert(0, str(HERE))
        for module in sorted(HERE.glob("*_triton.py")):
            for name, text in __import__(module.stem).ptx().items():
                (HERE / f"{name}.ptx").write_text(cleaned(text))


if __name__ == "__main__":
    main()
