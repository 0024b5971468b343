"""Carrying a plan out: launches, runs, what is accepted of them, and what a person asks meanwhile."""
