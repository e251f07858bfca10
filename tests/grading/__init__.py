"""The grader's own tests: protocol, sandbox, verdicts, attacks."""
