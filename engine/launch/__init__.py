"""What a launch of vLLM is made of: installation, flags, environment, model, command line, readiness."""
