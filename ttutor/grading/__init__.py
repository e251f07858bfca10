"""Grading a class: submissions are run apart, and give values; what they are worth is decided here.

The worker that runs a student's code returns values, never verdicts. The judge compares them with the reference's in a
process of its own, which never runs and never unpickles anything that came from a submission.
"""

from ttutor.names import front_door

_HOMES = {
    "Assignment": "assignment",
    "GradeRequest": "grade_request",
    "Outcome": "grade_request",
    "Record": "record",
    "grade_class": "grade_request",
    "read_assignment": "assignment",
    "read_records": "record",
}

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
