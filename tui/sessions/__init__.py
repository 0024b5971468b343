"""Sessions, comparisons and imports as their screens list and keep them, without widgets."""
