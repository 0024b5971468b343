"""Runs of `vllm bench serve`, through a process that stays loaded or through the command line."""
