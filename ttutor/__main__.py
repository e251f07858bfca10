"""``python -m ttutor``: the ``ttutor`` command, for launchers such as torchrun that start modules."""

import sys

from ttutor.cli import main

if __name__ == "__main__":
    sys.exit(main())
