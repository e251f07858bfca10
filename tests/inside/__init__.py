"""Tests of `ttutor.inside`, one file for each of its modules."""
