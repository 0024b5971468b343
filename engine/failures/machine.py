"""What the machine lacks: disk, compilers, libraries, a driver of the right age, a free port, releases that agree."""

import re
from collections.abc import Mapping
from typing import Any

from engine.failures.rule import INT, NUM, Around, Numbers, rule

_PORT = 8000
_QUOTED_PATH = r"(?:[^\n]{0,20}?['\"](?P<path>/[^'\"\n]{1,300})['\"])?"
_TOOLS = {
    "ninja": "pip install ninja into the server's Python, or apt-get install ninja-build.",
    "nvcc": "Install the CUDA toolkit and set CUDA_HOME to it, or set VLLM_USE_FLASHINFER_SAMPLER=0 in [server.env].",
    "python headers": "apt-get install python3-dev of the server's Python.",
    "ptxas": "Install the CUDA toolkit, or set TRITON_PTXAS_PATH to a ptxas.",
    "cmake": "pip install cmake into the server's Python.",
    "git": "apt-get install git.",
}
_COMPILER = "apt-get install build-essential, or set CC and CXX to a compiler; --enforce-eager needs none."
_NAMES = "ninja|nvcc|gcc|g\\+\\+|cc|c\\+\\+|clang|ptxas|cmake|git|ld|as|numactl"


def _tool(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    said = next((words[name] for name in ("tool", "command", "quoted", "cuda", "shell") if name in words), "")
    tool = "python headers" if said.endswith("Python.h") else said.rpartition("/")[2].lower()
    if not tool:
        tool = "C compiler"
    do = _TOOLS.get(tool, _COMPILER)
    return {"what": {"python headers": "Python.h, a header of Python,"}.get(tool, tool), "do": do}


def _cuda_release(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    """12020 is CUDA 12.2 (cudaRuntimeGetVersion)."""
    if "found_version" not in numbers:
        return {}
    found = int(numbers["found_version"])
    return {"driver_cuda": f"{found // 1000}.{found % 1000 // 10}"}


def _other_port(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    port = int(numbers.get("port", around.whole("port") or _PORT))
    return {"port": port, "other": str(port + 1 if port < 65535 else _PORT)}


def _where(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    path = next((words[name] for name in ("path", "target") if name in words), None)
    if path is None:
        return {"do": "Free space where the model, the caches (HF_HOME, VLLM_CACHE_ROOT) and the temporary files lie."}
    if path.startswith("/dev/shm"):
        return {"at": path, "do": "Start the container with more shared memory: --shm-size=8g, or --ipc=host."}
    cache = "VLLM_CACHE_ROOT" if re.search(r"/vllm\b|torch_compile|/triton|torchinductor", path) else "HF_HOME"
    return {"at": path, "do": f"Free space there, or move the caches: set {cache} in [server.env] to a larger disk."}


RULES = (
    rule(
        "disk_full",
        rf"No space left on device{_QUOTED_PATH}|failed to extend (?P<target>/dev/shm/\S{{1,100}}) to \d{{1,15}} bytes"
        r"|kind: StorageFull",
        "The disk is full[[ at {at}]].",
        "{do}",
        derive=_where,
    ),
    rule(
        "disk_full",
        rf"Not enough free disk space to download the file\. The expected file size is: (?P<wanted_mb>{NUM}) MB\. "
        rf"The target location (?P<path>/\S{{1,300}}) only has (?P<free_mb>{NUM}) MB",
        "{at} has {free_mb} MB free; the next file of the model has {wanted_mb} MB.",
        "{do}",
        derive=_where,
    ),
    rule(
        "disk_quota",
        rf"Disk quota exceeded{_QUOTED_PATH}|kind: (?:Filesystem)?QuotaExceeded",
        "The disk quota is used up[[ at {at}]]; df does not show it.",
        "{do}",
        derive=_where,
    ),
    rule(
        "missing_tool",
        rf"No such file or directory: '(?P<quoted>(?:/[^'\n]{{1,200}}/)?(?:{_NAMES}))'"
        rf"|(?:/bin/)?(?:sh|bash): (?:line )?(?:\d{{1,4}}: )?(?P<shell>(?:/\S{{1,200}}/)?(?:{_NAMES})): "
        r"(?:command )?not found"
        rf"|command '(?P<command>[^'\n]{{0,200}}?(?:{_NAMES}))' failed: No such file"
        r"|(?P<tool>[Nn]inja) is required to load C\+\+ extensions|Could not find (?P<cuda>nvcc)\b"
        r"|fatal error: (?P<header>Python\.h): No such file",
        "{what} is missing, which compiles kernels at the start.",
        "{do}",
        derive=lambda numbers, words, around: _tool(
            numbers, {**words, "tool": words["header"]} if "header" in words else words, around
        ),
    ),
    rule(
        "missing_tool",
        r"Failed to find C compiler|No working C\+\+ compiler found|InvalidCxxCompiler",
        "A C compiler is missing, which Triton and torch.compile need at the start.",
        _COMPILER,
    ),
    rule(
        "missing_tool",
        r"CUDA_HOME environment variable is not set",
        "nvcc, the CUDA compiler, is missing: CUDA_HOME is not set.",
        _TOOLS["nvcc"],
    ),
    rule(
        "version_mismatch",
        r"(?<![^\s:])(?P<library>[^\s:]{1,300}): undefined symbol: (?P<symbol>\w{1,120})"
        r"|(?<![^\s:])(?P<file>[^\s:]{1,300}): version `(?P<wanted>(?:GLIBC|GLIBCXX|CXXABI)_[\d.]{1,10})' not found",
        "Two libraries are of releases that do not agree: {in_file}[[ wants {wanted}]][[ wants {symbol}]].",
        "Install vLLM into a fresh environment with its own torch, and nothing else.",
        derive=lambda numbers, words, around: {
            "in_file": (words.get("library") or words.get("file") or "").rpartition("/")[2]
        },
    ),
    rule(
        "missing_library",
        r"(?P<library>lib[\w.+-]{1,80}): cannot open shared object file|cannot find -l(?P<link>\w{1,40})",
        "The library [[{library}]][[lib{link}]] is missing.",
        "Install it, or a vLLM that was built for this machine's CUDA.",
    ),
    rule(
        "version_mismatch",
        r"No module named 'vllm\._(?P<module>\w{1,40})'",
        "This vLLM was not built for this Python or machine: its module _{module} is missing.",
        "Install a wheel of vLLM for this Python, and do not start it from vLLM's source folder.",
    ),
    rule(
        "missing_library",
        r"ModuleNotFoundError: No module named '(?P<module>[\w.]{1,80})'"
        r"|(?:Import|Runtime|Value)Error: [^\n]{0,200}?Please install "
        r"(?P<package>[\w.\[\]-]{1,60}(?:[<>=~!]{1,2}[\w.]{1,20})?)(?: to use| via| for)",
        "A package is missing in the server's Python:[[ {module}]][[ {package}]].",
        "pip install[[ {module}]][[ '{package}']] with the server's Python.",
    ),
    rule(
        "version_mismatch",
        r"cannot import name '(?P<name>\w{1,80})' from '(?P<module>[\w.]{1,80})'",
        "{module} is of a release that vLLM does not expect: it has no {name}.",
        "Install vLLM into a fresh environment, so that pip chooses the release of its dependencies.",
    ),
    rule(
        "version_mismatch",
        r"(?<![\w-])(?P<first>[\w-]{1,40}) version \((?P<first_version>[\w.+]{1,30})\) does not match "
        r"(?P<second>[\w-]{1,40}) version \((?P<second_version>[\w.+]{1,30})\)",
        "{first} is {first_version}, {second} is {second_version}: the two must agree.",
        "pip install {first}=={second_version} with the server's Python.",
    ),
    rule(
        "version_mismatch",
        r"compiled with different CUDA (?:major )?versions|operator torchvision::nms does not exist"
        r"|Numba needs NumPy (?P<numpy>[\w. ]{1,30})|compiled using NumPy 1\.x cannot be run",
        "Packages in the server's Python do not agree[[: numba needs NumPy {numpy}]].",
        "Install vLLM into a fresh environment, so that torch, torchvision and NumPy are of its release.",
    ),
    rule(
        "version_mismatch",
        r"Driver/library version mismatch|unsupported display driver / cuda driver combination",
        "The NVIDIA driver in the kernel and its library are of different releases.",
        "Restart the machine (or take another pod): the driver was updated while it ran.",
    ),
    rule(
        "driver_too_old",
        rf"NVIDIA driver on your system is too old(?: \(found version (?P<found_version>{INT})\))?"
        r"|CUDA driver version is insufficient|PTX was compiled with an unsupported toolchain"
        r"|forward compatibility was attempted on non supported HW",
        "The NVIDIA driver is older than this vLLM's CUDA needs[[ (it knows CUDA {driver_cuda})]].",
        "Update the driver, or install a vLLM built for an older CUDA[[ ({driver_cuda} or before)]].",
        derive=_cuda_release,
    ),
    rule(
        "driver_too_old",
        r"Found no NVIDIA driver on your system|Failed to infer device type|No CUDA GPUs are available"
        r"|no CUDA-capable device is detected",
        "This vLLM sees no GPU: the driver is missing, or the container was started without GPUs.",
        "Run nvidia-smi; start the container with --gpus all, and check CUDA_VISIBLE_DEVICES.",
    ),
    # Not the server's own port: the one at which its workers find each other.
    rule(
        "port_in_use",
        r"server socket has failed to (?:bind|listen)[^\n]{0,120}?(?:port: |\]:)(?P<port>\d{1,5})\b"
        r"[^\n]{0,120}?[Aa]ddress already in use",
        "Port {port}, at which the server's own processes meet, is taken.",
        "Start it again: vLLM draws another; or set VLLM_PORT in [server.env] to a free one.",
    ),
    rule(
        "port_in_use",
        r"(?i)(?:bind on address \('[^'\n]{0,60}', (?P<port>\d{1,5})[^\n]{0,20}\): )?address already in use",
        "Port {port} is taken by another process.",
        "Choose another port (--port {other}), or stop what listens there (ss -ltnp shows it).",
        derive=_other_port,
    ),
    # No class of their own.
    rule(
        "unknown",
        r"(?:Read-only file system|Permission denied): '(?P<path>/[^'\n]{1,300})'",
        "{path} cannot be written by this user.",
        "Set HF_HOME and VLLM_CACHE_ROOT in [server.env] to folders that can.",
    ),
)
