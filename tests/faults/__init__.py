"""Kills, full disks and hangs: sweeps on a stand-in server with vLLM's process tree, and a few on the real one."""
