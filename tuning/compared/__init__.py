"""Two sessions held against each other."""
