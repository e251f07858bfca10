"""Text to learn from: a small grammar, data sets and files; how they are fetched and read."""
