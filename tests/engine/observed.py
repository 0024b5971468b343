"""What real servers printed and answered (vLLM 0.25.1 on an H200, 0.32.0 on a CPU), as the tests read it."""

from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"
H200 = FIXTURES / "h200-vllm-0.25.1"
CPU = FIXTURES / "cpu-vllm-0.32.0"

LOGS = sorted([*H200.glob("logs/*.log"), *CPU.glob("logs/*.log")])
METRICS = sorted([*H200.glob("metrics/*.txt"), *CPU.glob("metrics/*.txt")])


def file_id(path: Path) -> str:
    return f"{path.parts[-3].split('-')[0]}-{path.stem}"
