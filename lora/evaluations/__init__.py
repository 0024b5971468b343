"""An adapter held against its base: made, carried out, and said with its interval."""
