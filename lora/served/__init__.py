"""Adapters on a server: its flags, its routes, the way back, and the proof that they are in effect."""
