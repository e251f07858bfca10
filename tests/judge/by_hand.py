"""``python -m tests.judge.by_hand SUBMISSIONS OUT LANES``: a run with the fake grader, for tests that end it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.judge.fake import open_fake
from tests.judge.made import asked
from ttutor.grading.run import Wish, grade_class


def main(submissions: str, out: str, lanes: str) -> int:
    wish = Wish(
        submissions=Path(submissions), assignment=asked(), out=Path(out), lanes=int(lanes), open_grader=open_fake
    )
    return grade_class(wish).exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
