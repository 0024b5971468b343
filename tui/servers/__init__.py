"""Servers as their screen lists, starts and describes them, without widgets."""
