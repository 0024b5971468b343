"""What the LoRA commands and screens show and ask, without widgets."""
