"""The command `cache`: where verdicts are kept, and how to be rid of them.

In: what was typed. Out: lines and an exit code.
"""

from __future__ import annotations

from typing import Annotated

import typer

from memmodel.cli.exits import Exit, complain, guarded, say
from memmodel.errors import InputError


@guarded
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Forget everything.")] = False,
    path: Annotated[bool, typer.Option("--path", help="Print the file's path and nothing else.")] = False,
) -> Exit:
    """Say where verdicts are kept, and how many there are.

    `check`, `suite`, `diff` and the pytest plugin keep what they judged, by the content of the test, the model with
    all that it includes, the options and memmodel itself. MEMMODEL_CACHE names another folder; `off` keeps nothing.
    """
    from memmodel.cache.place import cache_dir
    from memmodel.cache.store import Store

    folder = cache_dir()
    if folder is None:
        raise InputError("nothing is kept: MEMMODEL_CACHE is `off`")
    store = Store(folder)
    if clear:
        store.remove()
    if path:
        say(str(store.path))
    elif clear:
        say(f"{store.path}: empty")
    else:
        count = store.count()
        size = store.path.stat().st_size / 1e6 if store.path.exists() else 0.0
        say(f"{store.path}: {count:,} entr{'y' if count == 1 else 'ies'}, {size:.1f} MB")
        not_kept(store.trouble)
    return Exit.AS_EXPECTED


def not_kept(trouble: str) -> None:
    """Say on stderr why verdicts are not kept, if there is a reason."""
    if trouble:
        complain(f"note: verdicts are not kept: {trouble}")
