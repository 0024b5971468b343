"""Why vLLM does not start, as rules by theme; `engine.explain` applies them. `rule.py` says how one is written."""
