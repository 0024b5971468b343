"""Processes, ports and sockets of this machine, as the kernel shows them."""
