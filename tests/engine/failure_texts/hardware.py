"""Quantization, number formats, kernels."""

from tests.engine.failure_texts.text import Text

TEXTS: dict[str, Text] = {
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
}  # fmt: skip
