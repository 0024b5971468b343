"""Samples of a server and its GPUs once a second, and what was added between two of them."""
