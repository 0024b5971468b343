"""Adapters as folders and as versions: what they hold, what vLLM makes of them, the registry."""
