"""The command `cache`: where verdicts are kept, and how to be rid of them.

In: what was typed. Out: lines and an exit code.
"""

from __future__ import annotations

import click

from memmodel.cli.exits import Exit, guarded, not_kept, say
from memmodel.errors import InputError


@click.command()
@click.option("--clear", is_flag=True, help="Forget everything.")
@click.option("--path", is_flag=True, help="Print the file's path and nothing else.")
@guarded
def cache(clear: bool, path: bool) -> Exit:
    """Say where verdicts are kept, and how many there are.

    `check`, `suite`, `diff`, `kernel` and the pytest plugin keep what they judged, by the content of the test or
    kernel, the model with all that it includes, the options and memmodel itself. Models that were read lie beside
    them, and --clear forgets these as well. MEMMODEL_CACHE names another folder; `off` keeps nothing.
    """
    from memmodel.base.resources import cache_dir
    from memmodel.cache.store import Store
    from memmodel.cat.kept import forget_models

    folder = cache_dir()
    if folder is None:
        raise InputError("nothing is kept: MEMMODEL_CACHE is `off` or empty")
    store = Store(folder)
    if clear:
        store.remove()
        forget_models()
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
