"""What several tests of the translator share."""

from tests.training.conftest import begin

__all__ = ["begin"]
