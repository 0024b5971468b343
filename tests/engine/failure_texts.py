"""What vLLM, torch and others say when a start fails, with the class, the numbers and the remedy that must come of it.

The wordings are those of the released wheels (0.10.0 to 0.33.0), torch, transformers, huggingface_hub, FlashInfer and
Triton; names and paths are invented.
"""

from dataclasses import dataclass, field

from tests.engine.log_forms import WRAPPER


@dataclass(frozen=True)
class Text:
    """`error` are the lines of the exception; `before` stands above the failure as it is. `remedy` and `cause` are
    parts of what must be said."""

    failure_class: str
    error: tuple[str, ...]
    remedy: str
    numbers: dict[str, float | int] = field(default_factory=dict)
    cause: str = ""
    before: str = ""
    after: str = ""


def info(text: str, process: str = "EngineCore pid=90") -> str:
    return f"({process}) INFO 09-18 10:00:00 [core.py:100] {text}\n"


def started(arguments: str) -> str:
    return info(f"non-default args: {{{arguments}}}", "APIServer pid=80")


V0_19 = info("Initializing a V1 LLM engine (v0.19.1) with config: model='/m', tensor_parallel_size=2, dtype=x")
V0_25 = info("Initializing a V1 LLM engine (v0.25.1) with config: model='/m', enforce_eager=False, dtype=x")
V0_10 = info("Initializing a V1 LLM engine (v0.10.2) with config: model='/m', enforce_eager=False, dtype=x")
LOADED = info("Model loading took 14.29 GiB memory and 1.5 seconds")
CACHE = info("GPU KV cache size: 176,240 tokens")
GRAPHS = info("Graph capturing finished in 5 secs, took 0.89 GiB")
READY = "INFO:     Application startup complete.\n"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. GPU 0 has a total capacity of 23.60 GiB "
    "of which 12.50 MiB is free. Including non-PyTorch memory, this process has 23.50 GiB memory in use."
)


def within(*functions: str) -> tuple[str, ...]:
    return tuple(f'  File "/venv/vllm/v1/worker/gpu_worker.py", line 7, in {name}' for name in functions)


def too_small(model: str, length: int, needed: str, available: str, rest: str) -> str:
    return (
        f"ValueError: To serve at least one request with the {model} max seq len ({length}), ({needed} GiB KV cache is "
        f"needed, which is larger than the available KV cache memory ({available} GiB){rest}"
    )


TEXTS: dict[str, Text] = {
    # GPU memory before anything is allocated
    "kv-old": Text(
        "kv_cache_too_small",
        (too_small("models's", 40960, "5.62", "2.25", ". Based on the available memory, the estimated maximum model "
                   "length is 16384. Try increasing `gpu_memory_utilization` or decreasing `max_model_len`"),),
        "--max-model-len to 16384",
        {"short_gib": 3.37, "longest_model_len": 16384, "max_model_len": 40960},
        "3.37 GiB too little",
    ),
    "kv-new-with-total": Text(
        "kv_cache_too_small",
        (too_small("model's", 32768, "4.0", "1.5", ". Based on the available memory, the estimated maximum model "
                   "length is 12288. Try increasing"),),
        "--gpu-memory-utilization to 0.91, or lower --max-model-len to 12288",
        {"needed_utilization": 0.91, "short_gib": 2.5},
        before=started("'gpu_memory_utilization': 0.8, 'max_model_len': 32768")
        + info("Free memory on device cuda:0 (23.2/23.6 GiB) on startup. Desired GPU memory utilization is (0.8, 18.9 "
               "GiB). Replace it with `--kv-cache-memory=1` to fit"),
    ),
    "kv-cut-short": Text(
        "kv_cache_too_small",
        (too_small("model's", 8192, "1.0", "0.5", ""),),
        "--max-model-len to about 4096",
        {"longest_model_len": 4096},
    ),
    "kv-none-fits": Text(
        "kv_cache_too_small",
        (too_small("models's", 40960, "5.62", "-1.25", ". Try increasing `gpu_memory_utilization`"),),
        "--gpu-memory-utilization to 0.92: no length fits",
        {"short_gib": 6.87},
        before=V0_25 + started("'gpu_memory_utilization': 0.5"),
    ),
    "kv-of-a-fixed-size": Text(
        "kv_cache_too_small",
        (too_small("model's", 8192, "1.5", "1.0", ". Based on the available memory, the estimated maximum model length "
                   "is 5456. Try increasing"),),
        "Raise --kv-cache-memory-bytes to 1610612736, or lower --max-model-len to 5456",
        before=started("'kv_cache_memory_bytes': 1073741824, 'gpu_memory_utilization': 0.5"),
    ),
    "no-kv": Text(
        "no_kv_memory",
        ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
         "initializing the engine.",),
        "--gpu-memory-utilization to 0.9",
        {"available_gib": -0.95, "weights_gib": 14.29},
        before=V0_19 + LOADED + info("Available KV cache memory: -0.95 GiB") + started("'gpu_memory_utilization': 0.3"),
    ),
    "no-kv-auto-fit": Text(
        "no_kv_memory",
        ("ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token.",),
        "smaller or quantized",
    ),
    "no-kv-cpu": Text(
        "no_kv_memory",
        ("ValueError: Available memory on node 0 (7.29/9.96 GiB) on kv cache allocation is less than requested memory "
         "for kv (-0.08/0.92 GiB). Reduce CPU memory used by other processes.",),
        "--gpu-memory-utilization to 0.92",
        {"available_gib": -0.08, "budget_gib": 0.92},
        before=started("'gpu_memory_utilization': 0.1") + V0_25,
    ),
    "free-old": Text(
        "free_memory_short",
        ("ValueError: Free memory on device (10.5/23.6 GiB) on startup is less than desired GPU memory utilization "
         "(0.9, 21.3 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",),
        "--gpu-memory-utilization to 0.44",
        {"highest_utilization": 0.44, "free_gib": 10.5},
    ),
    "free-device": Text(
        "free_memory_short",
        ("ValueError: Free memory on device cuda:0 (76.2/79.18 GiB) on startup is less than desired GPU memory "
         "utilization (0.98, 77.6 GiB). Decrease",),
        "--gpu-memory-utilization to 0.96",
        {"utilization": 0.98, "wanted_gib": 77.6},
    ),
    "free-external": Text(
        "free_memory_short",
        ("ValueError: Free memory on device cuda:0 (10.5/23.6 GiB) on startup is less than the engine's budget after "
         "excluding external process's weights (0.9, 21.3 GiB).",),
        "0.44",
    ),
    "free-cpu": Text(
        "free_memory_short",
        ("ValueError: Available memory on node 0 (7.29/9.96 GiB) on startup is less than desired CPU memory "
         "utilization (0.92, 9.16 GiB). On the CPU backend",),
        "--gpu-memory-utilization to 0.73",
    ),
    "free-cpu-cache": Text(
        "free_memory_short",
        ("ValueError: Available memory on node 0 (7.29/9.96 GiB) on kv cache allocation is less than requested memory "
         "for kv (8.0 GiB). Decrease --kv-cache-memory-bytes",),
        "--kv-cache-memory-bytes to 7516192768",
        {"free_gib": 7.29, "wanted_gib": 8.0},
    ),
    "race": Text(
        "memory_race",
        ("AssertionError: Error in memory profiling. Initial free memory 20.1 GiB, current free memory 22.2 GiB. This "
         "happens when other processes sharing the same container release GPU memory while vLLM is profiling.",),
        "again",
        {"first_gib": 20.1, "later_gib": 22.2},
    ),
    # GPU memory that ran out
    "oom-load": Text("oom_load", (OOM,), "--tensor-parallel-size 4", {"wanted_gib": 0.264, "free_gib": 0.012},
                     "loading", before=V0_19),
    "oom-load-by-frame": Text(
        "oom_load", (*within("load_model", "_initialize"), OOM), "--tensor-parallel-size 2", before=V0_25 + LOADED
    ),
    "oom-profile": Text(
        "oom_profile", (OOM,), "--max-num-batched-tokens to 4096", {"total_gib": 23.6}, "measuring",
        before=LOADED + info("Chunked prefill is enabled with max_num_batched_tokens=8192."),
    ),
    "oom-profile-by-frame": Text(
        "oom_profile",
        (*within("determine_available_memory", "profile_run", "_dummy_sampler_run"), OOM),
        "--max-num-batched-tokens to 2048, or --max-num-seqs to 256",
        before=LOADED + CACHE + started("'max_num_batched_tokens': 4096, 'max_num_seqs': 512"),
    ),
    "oom-graph": Text(
        "oom_graph",
        (*within("compile_or_warm_up_model", "capture_model"), "RuntimeError: CUDA error: out of memory"),
        "--gpu-memory-utilization to 0.87",
        before=V0_25 + LOADED + CACHE,
    ),
    "oom-graph-after-finished": Text(
        "oom_graph",
        (*within("compile_or_warm_up_model", "capture_model", "_dummy_run"), OOM),
        "--max-cudagraph-capture-size 128",
        before=V0_25 + LOADED + CACHE + GRAPHS,
    ),
    "oom-graph-0.10": Text(
        "oom_graph", ("RuntimeError: CUDA error: out of memory",), "--gpu-memory-utilization to 0.85",
        before=V0_10 + LOADED + CACHE,
    ),
    "oom-graph-estimate": Text(
        "oom_graph", (*within("determine_available_memory", "profile_cudagraph_memory"), OOM), "--enforce-eager",
        before=V0_25 + LOADED,
    ),
    "oom-after-graphs": Text(
        "oom_sampler", (OOM,), "--max-num-seqs to 128", cause="warming up", before=V0_25 + LOADED + CACHE + GRAPHS
    ),
    "oom-sampler": Text(
        "oom_sampler",
        (*within("_dummy_sampler_run"), OOM, "",
         "The above exception was the direct cause of the following exception:", "",
         "Traceback (most recent call last):",
         "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try "
         "lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."),
        "--max-num-seqs to 512",
        {"requests": 1024},
        "1024 requests",
        before=LOADED + CACHE + GRAPHS,
    ),
    "oom-pooler": Text(
        "oom_sampler",
        ("RuntimeError: CUDA out of memory occurred when warming up pooler with 256 dummy requests.",),
        "--max-num-seqs to 128",
    ),
    # The machine's memory
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
    # Limits
    "batched-seqs": Text(
        "batched_tokens_invalid",
        ("pydantic_core._pydantic_core.ValidationError: 1 validation error for SchedulerConfig",
         "  Value error, max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (256). "
         "[type=value_error, input_value=ArgsKwargs((), {'x': 1}), input_type=ArgsKwargs]"),
        "--max-num-seqs to 64",
        {"max_num_batched_tokens": 64, "max_num_seqs": 256},
    ),
    "batched-len": Text(
        "batched_tokens_invalid",
        ("ValueError: max_num_batched_tokens (1024) is smaller than max_model_len (4096). This effectively limits the "
         "maximum sequence length",),
        "--max-num-batched-tokens to 4096",
    ),
    "batched-active": Text(
        "batched_tokens_invalid", ("ValueError: max_num_active_seqs (64) cannot be greater than max_num_seqs (32).",),
        "--max-num-active-seqs to 32",
    ),
    "batched-images": Text(
        "batched_tokens_invalid",
        ("ValueError: Chunked MM input disabled but max_tokens_per_mm_item (16384) is larger than "
         "max_num_batched_tokens (8192). Please increase max_num_batched_tokens.",),
        "--max-num-batched-tokens to 16384",
    ),
    "batched-speculation": Text(
        "batched_tokens_invalid",
        ("ValueError: max_num_scheduled_tokens is set to -512 based on the speculative decoding settings, which does "
         "not allow any tokens to be scheduled.",),
        "--max-num-batched-tokens to 8192",
    ),
    "length": Text(
        "model_len_invalid",
        ("ValueError: User-specified max_model_len (65536) is greater than the derived max_model_len "
         "(max_position_embeddings=32768 or model_max_length=None in model's config.json).",),
        "--max-model-len to 32768",
        {"longest_model_len": 32768},
    ),
    "no-length": Text(
        "model_len_invalid", ("ValueError: max_model_len must be a positive integer, got int: -5. Example: x",),
        "--max-model-len", {"max_model_len": -5},
    ),
    "heads": Text(
        "unknown", ("ValueError: Total number of attention heads (40) must be divisible by tensor parallel size (6).",),
        "--tensor-parallel-size to 5",
    ),
    "gpus": Text(
        "unknown", ("ValueError: World size (4) is larger than the number of available GPUs (2) in this node.",),
        "--tensor-parallel-size to 2",
    ),
    # Flags
    "flag-removed": Text(
        "unknown_flag", (), "use --max-cudagraph-capture-size",
        after="usage: vllm serve [model_tag] [options]\nvllm: error: unrecognized arguments: "
        "--max-seq-len-to-capture 8192\n",
    ),
    "flag-misspelt": Text(
        "unknown_flag", (), "Did you mean --max-model-len?",
        after="vllm: error: unrecognized arguments: --max-model-length=4096\n",
    ),
    "flag-several": Text(
        "unknown_flag", (), "--swap-space was removed after vLLM 0.17.1",
        after="api_server.py: error: unrecognized arguments: --swap-space 4 --preemption-mode swap\n",
    ),
    "flag-too-new": Text(
        "unknown_flag", (), "--max-num-active-seqs came with vLLM 0.32.0: use --max-num-seqs",
        after="vllm: error: unrecognized arguments: --max-num-active-seqs 64\n",
    ),
    "flag-value": Text(
        "unknown_flag", (), "--max-num-seqs", cause="invalid int value: 'many'",
        after="usage: vllm serve [model_tag] [options]\nvllm serve: error: argument --max-num-seqs: invalid int value: "
        "'many'\n",
    ),
    "flag-ambiguous": Text(
        "unknown_flag", (), "whole name",
        after="vllm serve: error: ambiguous option: --max-num could match --max-num-seqs, --max-num-batched-tokens\n",
    ),
    # Quantization, number formats, kernels
    "awq": Text("quantization_unsupported", ("  Value error, Cannot find the config file for awq [type=value_error]",),
                "--quantization out"),
    "fp8": Text(
        "quantization_unsupported",
        ("ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. "
         "Current capability: 80.",),
        "another quantization", {"minimum": 89, "current": 80},
    ),
    "quantized-otherwise": Text(
        "quantization_unsupported",
        ("ValueError: Quantization method specified in the model config (gptq) does not match the quantization method "
         "specified in the `quantization` argument (awq).",),
        "set it to gptq",
    ),
    "quantized-split": Text(
        "quantization_unsupported",
        ("ValueError: Weight input_size_per_partition = 96 is not divisible by min_thread_k = 128. Consider reducing "
         "tensor_parallel_size or running with --quantization gptq.",),
        "--tensor-parallel-size to 1", {"size": 96},
    ),
    "dtype-awq": Text(
        "dtype_unsupported",
        ("ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes: [torch.float16]",),
        "--dtype to half", cause="only with torch.float16",
    ),
    "bfloat16": Text(
        "dtype_unsupported",
        ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU "
         "has compute capability 7.5. You can use float16 instead by explicitly setting the `dtype` flag",),
        "--dtype to half", {"current": 7.5}, "Tesla T4",
    ),
    "float16": Text(
        "dtype_unsupported",
        ("ValueError: The model type 'gemma3' does not support float16. Reason: Numerical instability. Please use "
         "bfloat16 or float32 instead.",),
        "--dtype to bfloat16",
    ),
    "no-kernel": Text(
        "kernel_missing", ("RuntimeError: CUDA error: no kernel image is available for execution on the device",),
        "compute capability",
    ),
    "fp8-cache": Text(
        "kernel_missing",
        ("ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', "
         "'fp8e5')",),
        "--kv-cache-dtype to auto",
    ),
    "attention": Text(
        "kernel_missing",
        ("ValueError: Selected backend AttentionBackendEnum.FLASHINFER is not valid for this configuration. Reason: "
         "['head_size not supported']",),
        "--attention-backend", cause="FLASHINFER",
    ),
    "linear": Text(
        "kernel_missing", ("ValueError: Failed to find a kernel that can implement the WNA16 linear layer. Reasons:",),
        "another quantization", cause="WNA16",
    ),
    "ptxas": Text("kernel_missing", ("ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",),
                  "built for this GPU", cause="sm_121a"),
    # Checkpoints and the hub
    "no-path": Text(
        "checkpoint_invalid",
        ("pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
         "  Value error, Invalid repository ID or local directory specified: '/models/x'. [type=value_error]"),
        "Check the path", cause="/models/x",
    ),
    "no-repository": Text(
        "checkpoint_invalid",
        ("OSError: acme/nothing is not a local folder and is not a valid model identifier listed on "
         "'https://huggingface.co/models'",),
        "HF_TOKEN", cause="acme/nothing",
    ),
    "no-config": Text(
        "checkpoint_invalid", ("OSError: /models/x does not appear to have a file named config.json. Checkout",),
        "holds config.json, or", cause="/models/x holds no config.json:",
    ),
    "no-weights": Text("checkpoint_invalid", ("RuntimeError: Cannot find any model weights with `/models/x`",),
                       "--load-format", cause="/models/x"),
    "shard": Text(
        "checkpoint_invalid",
        ('FileNotFoundError: No such file or directory: "/models/x/model-00002-of-00004.safetensors"',),
        "Fetch that file", cause="model-00002-of-00004.safetensors",
    ),
    "header": Text(
        "checkpoint_invalid",
        ("safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully "
         "covered",),
        "git-lfs", cause="incomplete metadata",
    ),
    "uninitialized": Text(
        "checkpoint_invalid",
        ("ValueError: Following weights were not initialized from checkpoint: {'lm_head.weight'}",), "again",
    ),
    "offline": Text(
        "checkpoint_invalid",
        ("huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder for the "
         "specified revision on the local disk and outgoing traffic has been disabled.",),
        "HF_HUB_OFFLINE=0",
    ),
    "gated": Text(
        "gated_model",
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1)", "",
         "Cannot access gated repo for url https://huggingface.co/acme/Secret-8B/resolve/main/config.json.",
         "Access to model acme/Secret-8B is restricted. You must have access to it and be authenticated."),
        "HF_TOKEN", cause="acme/Secret-8B",
    ),
    "gated-transformers": Text(
        "gated_model",
        ("OSError: You are trying to access a gated repo.",
         "Make sure to have access to it at https://huggingface.co/acme/Secret-8B."),
        "HF_TOKEN", cause="acme/Secret-8B",
    ),
    "forbidden": Text(
        "gated_model",
        ("requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: "
         "https://huggingface.co/acme/Secret-8B/resolve/main/config.json",),
        "HF_TOKEN", cause="acme/Secret-8B",
    ),
    "too-new-a-model": Text(
        "version_mismatch",
        ("KeyError: 'qwen9'", "", "During handling of the above exception, another exception occurred:", "",
         "ValueError: The checkpoint you are trying to load has model type `qwen9` but Transformers does not recognize "
         "this architecture."),
        "Upgrade vLLM", cause="qwen9",
    ),
    "architecture-of-old": Text(
        "version_mismatch",
        ("ValueError: Model architecture MllamaForConditionalGeneration was supported in vLLM until v0.10.2, and is "
         "not supported anymore. Please use an older version of vLLM",),
        "vLLM 0.10.2", cause="MllamaForConditionalGeneration",
    ),
    "architecture": Text(
        "version_mismatch",
        ("ValueError: Model architectures ['Qwen9ForCausalLM'] are not supported for now. Supported architectures: x",),
        "Upgrade vLLM", cause="Qwen9ForCausalLM",
    ),
    # The machine
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
    # Adapters
    "rank": Text(
        "lora_rank",
        ("ValueError: Call to add_lora method failed: LoRA rank 24 is greater than max_lora_rank 16.",),
        "--max-lora-rank to 32", {"rank": 24, "max_lora_rank": 16, "fitting_rank": 32},
    ),
    "rank-flag": Text(
        "lora_rank", (), "--max-lora-rank to 32", {"rank": 24},
        after="vllm serve: error: argument --max-lora-rank: invalid choice: 24 (choose from 1, 8, 16, 32, 64, 128)\n",
    ),
    "rank-config": Text("lora_rank", ("ValueError: max_lora_rank (24) must be one of (8, 16, 32, 64, 128, 256, 320, "
                                      "512).",), "--max-lora-rank to 32"),
    "modules-to-save": Text("lora_refused", ("ValueError: vLLM only supports modules_to_save being None.",),
                            "modules_to_save"),
    "dora": Text("lora_refused", ("ValueError: vLLM does not yet support DoRA.",), "merge it", cause="DoRA"),
    "pissa": Text("lora_refused", ("ValueError: vLLM does not support init_lora_weights='pissa'. Inits such as PiSSA",),
                  "merge it", cause="pissa"),
    "target-modules": Text(
        "lora_refused",
        ("ValueError: While loading /adapters/a, expected target modules in ['qkv_proj', 'o_proj'] but received "
         "['lm_head']. Please verify that the loaded LoRA module is correct",),
        "qkv_proj", cause="lm_head",
    ),
    "no-adapter": Text("lora_refused", ("ValueError: Loading lora a failed: No adapter found for /adapters/a",),
                       "--lora-modules", cause="/adapters/a"),
    # Time and life
    "ready-time": Text(
        "ready_timeout",
        ("TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight "
         "loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S)",),
        "VLLM_ENGINE_READY_TIMEOUT_S to 1200", {"waited_s": 600},
    ),
    "stalled-worker": Text("stalled", ("TimeoutError: RPC call to execute_model timed out.",),
                           "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=600"),
    "stalled-nccl": Text(
        "stalled",
        ("[rank0]:[E918 10:00:00.0 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: "
         "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",),
        "NCCL_P2P_DISABLE=1", {"waited_s": 600}, "ALLREDUCE",
    ),
    "health-500": Text(
        "health_broken", (), "start it again", {"status": 500, "answers": 3}, "500",
        before=LOADED + CACHE + READY,
        after='INFO:     127.0.0.1:4 - "GET /health HTTP/1.1" 500 Internal Server Error\n' * 3,
    ),
    "interrupted": Text("interrupted", (), "again", after="KeyboardInterrupt\n"),
    "unknown": Text(
        "unknown", ("vllm.exceptions.OddError: the moon is full", ), "log", cause="OddError: the moon is full",
    ),
    "only-a-wrapper": Text("unknown", (WRAPPER,), "log", cause="does not say why"),
    "worker-wrapper": Text(
        "unknown", ("Exception: WorkerProc initialization failed due to an exception in a background process. See "
                    "stack trace for root cause.",), "log", cause="does not say why"
    ),
    "read-only": Text("unknown", ("OSError: [Errno 30] Read-only file system: '/root/.cache/vllm'",), "VLLM_CACHE_ROOT",
                      cause="/root/.cache/vllm"),
}  # fmt: skip
