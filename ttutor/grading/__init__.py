"""Grading a class: submissions are run apart, and give values; what they are worth is decided here.

The worker that runs a student's code returns values, never verdicts. The judge compares them with the reference's in a
process of its own, which never runs and never unpickles anything that came from a submission.
"""
