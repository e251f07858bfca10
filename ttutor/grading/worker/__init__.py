"""What runs inside the sandbox, beside a student's code: nothing here knows an exercise, and nothing imports ttutor."""
