#!/usr/bin/env bash
# Exit 0 where an NVIDIA GPU can be used here, else 1.
# The driver's file is enough in a container without nvidia-smi; nvidia-smi is enough where /proc is masked (WSL).
[ -e /dev/nvidia0 ] && [ -e /proc/driver/nvidia/version ] && exit 0
command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'
