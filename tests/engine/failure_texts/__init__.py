"""Texts of failures by theme, as `engine/failures/` has their rules; `table.py` has all of them."""
