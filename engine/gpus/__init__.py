"""The machine's GPUs as NVML tells them: which there are, what they do, who holds them."""
