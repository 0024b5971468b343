"""One vLLM server and one machine, as facts. Imports `store` only."""
