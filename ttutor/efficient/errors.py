"""What a backend says when it is asked for something that it cannot do."""


class BackendError(ValueError):
    """A named backend cannot run this call; the message says why, and what can."""
