"""Compile the kernels of the gallery again: each .cu as it is, and fixed, with -DFIXED.

pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl
python compile.py [NAME ...]   # writes NAME.ptx and NAME-fixed.ptx beside the sources; no GPU is needed
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent


def nvcc() -> Path:
    """The compiler that the pip packages brought."""
    spec = find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for compiler in sorted(Path(place).glob("*/bin/nvcc")):
            return compiler
    sys.exit("nvcc was not found: pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime")


def target(source: str) -> str:
    """The architecture whose instructions a kernel has."""
    if "multicast::cluster::32b" in source:
        return "sm_107a"
    if "tmem_" in source or "st.bulk" in source:
        return "sm_100a"
    return "sm_90a" if re.search(r"wgmma|griddepcontrol|cluster|load\(|store\(", source) else "sm_80"


def cleaned(text: str) -> str:
    """Without paths of the machine and without debugging data."""
    text = re.sub(r'(\.file\s+\d+ ")[^"]*/([^"/]+")', r"\1\2", text)
    text = re.sub(r"\n\s*\.section\s+\.debug[^{]*\{[^}]*\}", "", text)
    return re.sub(r"^//(?! memmodel:).*\n", "", text.replace("\0", ""), flags=re.MULTILINE).lstrip()


def main(names: list[str]) -> None:
    for source in sorted(HERE.glob("*.cu")):
        if names and source.stem not in names:
            continue
        for suffix, flags in (("", []), ("-fixed", ["-DFIXED"])):
            out = source.with_name(f"{source.stem}{suffix}.ptx")
            options = ["-ptx", "-lineinfo", "-O3", "-std=c++17", f"-arch={target(source.read_text())}", *flags]
            subprocess.run([str(nvcc()), *options, source.name, "-o", out.name], cwd=HERE, check=True)
            out.write_text(cleaned(out.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
