"""A process that computes for a keeper: its Python, its life, what it tells, how it ended."""
