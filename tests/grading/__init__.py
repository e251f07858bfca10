"""The instructor's suite: ``pytest tests/grading --submission FILE`` grades one submission with plain pytest."""
