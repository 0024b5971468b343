"""Quantizations, number formats and kernels that this GPU, model or build has not."""

from engine.failures.rule import INT, NUM, rule

RULES = (
    rule(
        "quantization_unsupported",
        r"Cannot find the config file for (?P<method>[\w-]+)",
        "The checkpoint is not quantized with {method}: it has no config for it.",
        "Leave --quantization out, or use a checkpoint that was quantized with {method}.",
    ),
    rule(
        "quantization_unsupported",
        rf"quantization method (?P<method>\S+) is not supported for the current GPU\. "
        rf"Minimum capability: (?P<minimum>{INT})\. Current capability: (?P<current>{INT})",
        "{method} needs compute capability {minimum}, this GPU has {current}.",
        "Use a checkpoint of another quantization, or a newer GPU.",
    ),
    rule(
        "quantization_unsupported",
        r"Quantization method specified in the model config \((?P<method>[\w-]{1,60})\) does not match the "
        r"quantization method specified in the `quantization` argument \((?P<asked>[\w-]{1,60})\)",
        "The checkpoint is quantized with {method}, not with {asked}.",
        "Leave --quantization out, or set it to {method}.",
    ),
    rule(
        "quantization_unsupported",
        r"(?:Unknown|Invalid) quantization method: (?P<method>[\w-]{1,60})",
        "This vLLM knows no quantization {method}.",
        "Leave --quantization out: vLLM reads the method from the checkpoint.",
    ),
    rule(
        "quantization_unsupported",
        r"input size is not aligned with the quantized weight shape"
        r"|(?P<side>(?:in|out)put_size_per_partition) = (?P<size>\d{1,9}) is not divisible by",
        "The quantized weights cannot be split over so many GPUs[[ ({side} would be {size})]].",
        "Lower --tensor-parallel-size to 1 or 2.",
    ),
    rule(
        "dtype_unsupported",
        r"(?<![\w.])(?P<dtype>[\w.]{1,40}) is not supported for quantization method (?P<method>\S+)\. Supported dtypes"
        r"(?:: \[(?P<dtypes>[^\]\n]{1,120})\])?",
        "{method} does not work with dtype {dtype}[[, only with {dtypes}]].",
        "Set --dtype to half.",
    ),
    rule(
        "dtype_unsupported",
        rf"Bfloat16 is only supported on GPUs with compute capability of at least (?P<minimum>{NUM})\.?"
        rf"(?: Your (?P<gpu>[^\n]{{1,60}}?) GPU has compute capability (?P<current>{NUM}))?",
        "This GPU[[ ({gpu}, {current})]] does not know bfloat16 (it needs compute capability {minimum}).",
        "Set --dtype to half.",
    ),
    rule(
        "dtype_unsupported",
        r"model type '?(?P<model>[\w.-]{1,60})'? does not support float16\. Reason: (?P<reason>[^\n.]{1,120})",
        "{model} does not work in float16: {reason}.",
        "Set --dtype to bfloat16, or to float32 on a GPU without it.",
    ),
    rule(
        "dtype_unsupported",
        r"Unknown dtype: '?(?P<dtype>[\w.-]{1,40})|Float8_e4m3fn[^\n]{0,80}not (?:implemented|supported)",
        "vLLM knows no dtype[[ {dtype}]] here.",
        "Set --dtype to auto, bfloat16 or float16.",
    ),
    rule(
        "kernel_missing",
        r"no kernel image is available for execution on the device",
        "This vLLM has no kernels for this GPU.",
        "Install a vLLM that supports the GPU's compute capability, built for CUDA 12.8 or later for a Blackwell GPU.",
    ),
    rule(
        "kernel_missing",
        r"Value '(?P<arch>sm_\w{1,10})' is not defined for option 'gpu-name'"
        r"|CUDA capability (?P<capability>sm_\d{2,4}) is not compatible with the current PyTorch",
        "The installed CUDA cannot make kernels for this GPU[[ ({arch})]][[ ({capability})]].",
        "Install a vLLM built for this GPU, or set TRITON_PTXAS_PATH to the ptxas of a newer CUDA toolkit.",
    ),
    rule(
        "kernel_missing",
        r"type fp8e4nv not supported in this architecture",
        "This GPU has no fp8 (e4m3).",
        "Set --kv-cache-dtype to auto, and use a checkpoint that is not fp8.",
    ),
    rule(
        "kernel_missing",
        r"No valid attention backend[^\n]{0,40}? (?:for|found)[^\n]{0,400}"
        r"|Selected (?:MLA prefill )?backend (?:AttentionBackendEnum\.|_Backend\.)?"
        r"(?P<backend>\w{1,60}) is not valid for this configuration(?:\. Reason: (?P<reason>[^\n]{1,200}))?"
        r"|FlashAttention only supports Ampere GPUs or newer",
        "No attention back end works here[[: {backend} does not, {reason}]].",
        "Leave --attention-backend (VLLM_ATTENTION_BACKEND) out, and set --kv-cache-dtype to auto.",
    ),
    rule(
        "kernel_missing",
        r"Failed to find a kernel that can implement the (?P<layer>[^\n.]{1,80})"
        r"|'_OpNamespace' '(?P<namespace>\w{1,40})' object has no attribute '(?P<kernel>\w{1,80})'",
        "A kernel is missing[[ for the {layer}]][[: {namespace}.{kernel} is not in this build]].",
        "Use a checkpoint of another quantization (awq, gptq or fp8), or a vLLM built for this GPU.",
    ),
)
