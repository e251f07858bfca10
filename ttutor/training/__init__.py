"""Training a translator."""
