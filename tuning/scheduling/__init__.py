"""Which launches and runs a plan comes to, in which order, what is made and what is missing, and what it costs."""
