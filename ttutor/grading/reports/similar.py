"""Submissions that share many unusual lines: told to the instructor as information, never part of a mark.

Lines are compared as they stand, without reading them as code. Renaming everything hides from this; tools that are made
for it (JPlag, Dolos, compare50, copydetect) see more.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Sequence

from ttutor.grading.marks import Submission

SHORTEST, LONGEST, MOST_KEPT = 12, 300, 256
MOST_BYTES = 4 << 20
ENOUGH, ALIKE = 6, 0.8


def unusual_lines(submission: Submission) -> tuple[str, ...]:
    """Return digests of a submission's lines, sorted; of many, those with the smallest digests."""
    found = set()
    for file in submission.files:
        for line in file.data[:MOST_BYTES].split(b"\n"):
            plain = b"".join(line.strip(b' \t\r",').removesuffix(b"\\n").split())
            if SHORTEST <= len(plain) <= LONGEST and not plain.startswith(b"#"):
                found.add(hashlib.sha256(plain).hexdigest()[:12])
    return tuple(sorted(found)[:MOST_KEPT])


def similar_pairs(lines: Sequence[tuple[str, tuple[str, ...]]]) -> list[tuple[float, str, str, int]]:
    """Return the pairs of students that share most of their lines, the most alike first.

    Args:
        lines: of each student the id and the digests of `unusual_lines`. A line that a third of the class has (and
            more than two) is what was handed out, and counts for nothing.

    Returns:
        Of each pair the share of the lines that either has, the two ids, and how many lines both have.
    """
    often = Counter(line for _, mine in lines for line in mine)
    common = {line for line, count in often.items() if count > max(2, len(lines) / 3)}
    rare = [(student, set(mine) - common) for student, mine in lines]
    pairs = []
    for (one, mine), (other, theirs) in itertools.combinations(rare, 2):
        shared = len(mine & theirs)
        if shared >= ENOUGH and shared / len(mine | theirs) >= ALIKE:
            pairs.append((shared / len(mine | theirs), one, other, shared))
    return sorted(pairs, key=lambda pair: (-pair[0], *pair[1:]))
