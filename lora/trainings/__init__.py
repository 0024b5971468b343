"""Trainings: made, started and stopped, and the memory that is free for one."""
