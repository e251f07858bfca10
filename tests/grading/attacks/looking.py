"""Attacks that look for the reference and for right answers."""

from __future__ import annotations

from tests.grading.attacks.attack import python

__all__ = ["ATTACKS"]

ATTACKS = (
    python(
        "imports_the_reference",
        "imports the course's package and calls its answer",
        """
        from ttutor.exercises import find

        def softmax(scores, dim=-1):
            return find("attention.softmax").reference(scores, dim)
        """,
    ),
    python(
        "finds_the_reference",
        "looks for the course's package on the disk and runs it",
        """
        import glob, os, sys

        def look():
            for pattern in ("/*/*/ttutor", "/*/*/*/ttutor", "/usr/lib/python3*/*/ttutor", "/*/*/*/*/*/*/ttutor"):
                for place in glob.glob(pattern):
                    if os.path.exists(place + "/exercises/exercise.py"):
                        return os.path.dirname(place)

        def softmax(scores, dim=-1):
            sys.meta_path[:] = [one for one in sys.meta_path if type(one).__name__ != "Given"]
            for name in [name for name in sys.modules if name.split(".")[0] == "ttutor"]:
                del sys.modules[name]
            sys.path.insert(0, look())
            from ttutor.exercises import find
            return find("attention.softmax").reference(scores, dim)
        """,
    ),
    python(
        "searches_the_memory",
        "looks for the right answer among the objects of its process",
        """
        import gc, sys, torch

        def softmax(scores, dim=-1):
            for one in gc.get_objects():
                if isinstance(one, torch.Tensor) and one.shape == scores.shape and one is not scores:
                    if torch.allclose(one.sum(dim), one.sum(dim) * 0 + 1, atol=1e-3):
                        return one
            frame = sys._getframe()
            while frame:
                for name in ("expected", "reference", "exercise"):
                    if name in frame.f_locals:
                        return frame.f_locals[name]
                frame = frame.f_back
            return scores
        """,
    ),
)
