"""What a person asks for: a plan's text, its grid, its limits and its workloads."""
