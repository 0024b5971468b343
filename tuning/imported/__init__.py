"""Results of `vllm bench serve` and `vllm bench sweep` that were measured elsewhere, and what they can say."""
