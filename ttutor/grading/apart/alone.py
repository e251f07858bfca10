"""A process that serves one submission and was started for it: where no zygote can be had.

It speaks over its standard input and output, as every system has them.
"""

from __future__ import annotations

import os
from typing import Any

from . import confine
from .zygote import above, serve_apart

__all__ = ["main"]


def main(settings: dict[str, Any]) -> None:
    """Get ready, give rights up, and serve.

    Args:
        settings: ``role``, ``memory`` and ``processes`` as `serve_apart` takes them, memory on top of what is in use;
            ``user`` whom to become or None; ``network`` whether to leave the network; ``landlock`` the places that may
            be read or None; ``home`` the one folder that may be written; ``everything`` whether to load all of the
            standard library now, since the user to become cannot read it.
    """
    if settings["role"] == "worker":
        from .worker import preload, preload_everything

        preload(all_of_torch=False)
        if settings["everything"]:
            preload_everything()
    if settings["home"] is not None:
        os.chdir(settings["home"])
    settings = settings | {"memory": above(settings["memory"])}
    if settings["user"] is not None:
        confine.become(settings["user"])
    if settings["network"]:
        confine.unshare_network()
    if settings["landlock"] is not None:
        confine.landlock(settings["landlock"], [os.getcwd(), "/dev/null"])
    serve_apart(settings, 0, 1)
