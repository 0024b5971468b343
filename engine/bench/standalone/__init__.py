"""Scripts that run in vLLM's own Python and import nothing of ours."""
