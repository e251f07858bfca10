"""What people and other programs read of the marks."""
