"""A run as charts and words, without widgets."""
