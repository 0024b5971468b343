"""A page of /metrics: fetched, and read by the names that each vLLM version has."""
