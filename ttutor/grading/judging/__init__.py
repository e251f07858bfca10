"""Reading a submission, running it in a worker, and deciding what it is worth."""
