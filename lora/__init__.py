"""Adapters: datasets, training, the registry, serving. Imports `engine`, `store` and `tuning.statistics`."""
