"""vLLM's log: its lines, the settings it began with, the facts it tells, what went wrong first."""
