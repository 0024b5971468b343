#!/usr/bin/env bash
# Begin the set-up of a virtual environment: scripts/open_venv.sh PYTHON VENV. Whoever finishes it removes VENV/.unfinished.
set -euo pipefail
python=$1
venv=$2

# pip takes a package whose files are half there for installed, so what was cut off is made anew.
if [ -e "$venv/.unfinished" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
fi
rm -f "$venv"/.ready-*
mkdir -p "$venv"
touch "$venv/.unfinished"
if [ ! -e "$venv/bin/python" ] && ! error=$("$python" -m venv "$venv" 2>&1); then
    echo "$error" >&2
    echo "cannot make $venv with $python: where the distribution splits it off, install its venv package (python3-venv)" >&2
    exit 1
fi
