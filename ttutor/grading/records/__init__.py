"""Marks and what is kept of them: records, the gradebook, corrections by hand."""
