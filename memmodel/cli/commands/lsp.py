"""The command `lsp`: a language server for editors.

In: the protocol on standard input. Out: the protocol on standard output. docs/editor.md says how editors start it.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

import click

from memmodel.cli.exits import Exit, complain, guarded
from memmodel.errors import InputError


@click.command()
@click.option("--stdio", is_flag=True, help="Over standard input and output, as always.")
@guarded
def lsp(stdio: bool) -> Exit:
    """Serve an editor: errors and findings as you type.

    Also hovers, definitions, outlines and repairs, for `.litmus`, `.cat` and `.ptx` files. Editors start it by
    themselves (docs/editor.md).
    """
    if find_spec("pygls") is None:
        raise InputError("the language server needs pygls, which is not installed", hint="pip install 'memmodel[lsp]'")
    from memmodel.lsp.server import serve

    if sys.stdin.isatty():
        complain("waiting for an editor on standard input; docs/editor.md says how editors start this")
    serve()
    return Exit.AS_EXPECTED
