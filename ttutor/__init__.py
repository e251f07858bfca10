"""ttutor: the Transformer, taught by code that you can read, run, import and grade with.

Each idea has one room: a chapter of the book, a module of the same name here and a test file beside it.
Importing ``ttutor`` itself loads nothing heavy; import the room you need, as in
``from ttutor.attention import scaled_dot_product_attention``.
"""

import sys

__version__ = "0.2.0.dev0"


def __getattr__(name: str) -> object:
    from ttutor.names import hand_out

    return hand_out(__name__, name, {})


class _OtherModules:
    """Asked last for a module: says of one that others have, such as ``ttutor.utils``, where its content stands."""

    @staticmethod
    def find_spec(module: str, *_: object) -> None:
        """Refuse a module of others by the name of ours; of any other say nothing, so that Python does."""
        if module.startswith("ttutor.") and module.count(".") == 1:
            from ttutor.names import refuse_module

            refuse_module(module)


sys.meta_path.append(_OtherModules)
