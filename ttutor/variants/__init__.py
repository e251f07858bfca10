"""The families that grew out of the Transformer, each composed of the same parts."""
