"""The machine before anything is started: what was read of it, and apart from that what is to be said about it."""
