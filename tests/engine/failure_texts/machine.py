"""The machine: its memory, disk, tools, libraries, driver and ports."""

from tests.engine.failure_texts.text import Text

TEXTS: dict[str, Text] = {
    "host-exit-code": Text(
        "host_oom", ("Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.",),
        "Give the container more memory", cause="signal 9",
    ),
    "host-core-procs": Text(
        "host_oom", ("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
                     "{'EngineCore_DP0': -9}",), "MAX_JOBS=2"
    ),
    "host-cgroup": Text(
        "host_oom", (), "memory", {"rss_gib": 31.25},
        after="[123.4] Memory cgroup out of memory: Killed process 4242 (VLLM::EngineCor) total-vm:99999999kB, "
        "anon-rss:32768000kB, file-rss:0kB\n",
    ),
    "host-shell": Text("host_oom", (), "memory", after="bash: line 1:   123 Killed                  vllm serve /m\n"),
    "host-allocator": Text(
        "host_oom",
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:115] err == 0. DefaultCPUAllocator: can't allocate memory: you "
         "tried to allocate 545259520 bytes. Error code 12 (Cannot allocate memory)",),
        "memory",
    ),
    "disk": Text("disk_full", ("OSError: [Errno 28] No space left on device: '/root/.cache/vllm/torch_aot/a'",),
                 "VLLM_CACHE_ROOT", cause="/root/.cache/vllm"),
    "disk-rust": Text(
        "disk_full", ('RuntimeError: Data processing error: IO Error: Os { code: 28, kind: StorageFull, message: x }',),
        "Free space",
    ),
    "disk-hub": Text(
        "disk_full",
        ("OSError: Not enough free disk space to download the file. The expected file size is: 4987.20 MB. The target "
         "location /root/.cache/huggingface/hub only has 1234.56 MB free disk space.",),
        "HF_HOME", {"free_mb": 1234.56}, "/root/.cache/huggingface/hub",
    ),
    "shared-memory": Text(
        "disk_full", ("misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-aBcDeF to 33030532 bytes",),
        "--shm-size=8g", cause="/dev/shm/nccl-aBcDeF",
    ),
    "quota": Text("disk_quota", ("OSError: [Errno 122] Disk quota exceeded: '/workspace/hf/hub/blobs/x'",), "HF_HOME",
                  cause="/workspace/hf/hub/blobs/x"),
    "ninja": Text("missing_tool", ("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",),
                  "pip install ninja"),
    "ninja-torch": Text("missing_tool", ("RuntimeError: Ninja is required to load C++ extensions",), "ninja"),
    "nvcc": Text(
        "missing_tool",
        ("RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist",), "CUDA toolkit",
    ),
    "nvcc-shell": Text("missing_tool", ("/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found",), "CUDA_HOME"),
    "gcc": Text(
        "missing_tool",
        ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set "
         "triton.knobs.build.impl.",),
        "build-essential",
    ),
    "headers": Text("missing_tool", ("cuda_utils.c:7:10: fatal error: Python.h: No such file or directory",),
                    "python3-dev"),
    "library": Text(
        "missing_library",
        ("ImportError: libcudart.so.13: cannot open shared object file: No such file or directory",), "Install it",
        cause="libcudart.so.13",
    ),
    "package": Text("missing_library", ("ModuleNotFoundError: No module named 'bitsandbytes'",),
                    "pip install bitsandbytes"),
    "driver": Text(
        "driver_too_old",
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update your GPU "
         "driver",),
        "CUDA", {"found_version": 12020}, "CUDA 12.2",
    ),
    "driver-ptx": Text(
        "driver_too_old", ("RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",),
        "Update the driver",
    ),
    "no-gpu": Text("driver_too_old", ("RuntimeError: Failed to infer device type, please set the environment variable "
                                      "`VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging",), "--gpus all"),
    "undefined-symbol": Text(
        "version_mismatch",
        ("ImportError: /venv/lib/python3.12/site-packages/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda3SetEab",),
        "fresh environment", cause="_C.abi3.so",
    ),
    "flashinfer": Text(
        "version_mismatch",
        ("RuntimeError: flashinfer-cubin version (0.5.2) does not match flashinfer version (0.5.3). Please install",),
        "flashinfer-cubin==0.5.3",
    ),
    "nvml": Text("version_mismatch", ("vllm.third_party.pynvml.NVMLError_LibRmVersionMismatch: Driver/library version "
                                      "mismatch",), "Restart the machine"),
    "port": Text(
        "port_in_use", (), "--port 8107", {"port": 8106},
        after="ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8106): address already in "
        "use\n",
    ),
    "port-early": Text("port_in_use", ("OSError: [Errno 98] Address already in use",), "--port 8001", {"port": 8000}),
}  # fmt: skip
