"""What a vLLM log tells of a start: memory, KV cache, compilation, graphs, kernels, version. vLLM 0.10 to 0.33.

The formats are those of the released wheels; a comment says which versions a wording belongs to where they differ.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Any

from engine.logs.log_lines import LogLine, parse_line
from engine.records import LogFacts
from engine.text import redact

# Bounded, so that no log can make int() or float() fail or give an infinity.
_NUMBER = r"(-?\d{1,15}(?:\.\d{1,9})?)"
_COUNT = r"(\d[\d,]{0,18})"

# 0.10.0 to 0.28.0 print tokens and concurrency on two lines, later versions on one; the device is GPU, CPU, XPU or
# "GPU + host".
_KV_TOKENS = re.compile(rf"\w{{1,20}}(?: \+ host)? KV cache size: {_COUNT} tokens")
_CONCURRENCY = re.compile(rf"Maximum concurrency for {_COUNT} tokens per request: {_NUMBER}x")
# "memory" only from 0.11.2 on, and not in the V2 model runner.
_LOADED = re.compile(rf"Model loading took {_NUMBER} GiB(?: memory)? and {_NUMBER} seconds")
_WEIGHTS_READ = re.compile(rf"Loading weights took {_NUMBER} seconds")
_KV_MEMORY = re.compile(rf"Available KV cache memory: {_NUMBER} GiB")
_KV_MEMORY_CPU = re.compile(rf"(?:Explicitly|Auto) set \({_NUMBER}/{_NUMBER}\) GiB for KV cache")
_GRAPHS = re.compile(rf"Graph capturing finished in {_NUMBER} secs?, took {_NUMBER} GiB")
_COMPILED = re.compile(rf"torch\.compile (?:takes|took) {_NUMBER} s in total")
_INIT = re.compile(
    rf"init engine \(profile, create kv cache, warmup model\) took {_NUMBER} s(?:econds)?"
    rf"(?: \(compilation: {_NUMBER} s)?"
)
_ENGINE = re.compile(r"Initializing a V\d LLM engine \(v([^)\s]+)\) with config: (.*)")
_API_VERSION = re.compile(r"vLLM API server version (\S+)")  # 0.10.0 to 0.24.0
_LOGO_VERSION = re.compile(r"[▀▄█] +version (\S+)")
_SERVING = re.compile(r"Starting vLLM (?:API )?server(?: \d+)? on (\S+)")
_NON_DEFAULT = re.compile(r"non-default args: (\{.*)")
_BATCHED_TOKENS = re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)")

# "Using FLASH_ATTN attention backend out of …" now; "Using Flash Attention backend on V1 engine." in 0.10 and 0.11;
# "Using AttentionBackendEnum.FLASH_ATTN backend." and "Using FLASH_ATTN backend." between, told from other back ends by
# the file that prints them.
_ATTENTION = re.compile(
    r"Using (?:AttentionBackendEnum\.)?([A-Z]\w*(?: [A-Z]\w*)?) (attention backend|backend on V\d engine|backend\.)"
)
_PLATFORM_FILES = ("cuda.py", "rocm.py", "cpu.py", "xpu.py", "tpu.py", "interface.py")
_LINEAR_KERNEL = re.compile(
    r"(?:Using|Selected) (\w+) for (?:\w+ GEMM|mixed-precision linear|\w*(?:LinearMethod|W\w*A\d+\w*))"
)
_CONVERTED = re.compile(r"convertible to \w+ during runtime\. Using (\w+) kernel")


class LogReader:
    """Facts of a log that is still being written: `feed` bytes as they come, read `facts` at any time.

    A line counts once its end has come. Of several engines or workers the smallest cache and the largest cost is kept,
    since those decide.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial = ""
        self._found: dict[str, Any] = {}
        self._init_compile_s: float | None = None
        self._weights_read_s: float | None = None
        self._config: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Take the next piece of the log, cut anywhere."""
        lines = (self._partial + self._decoder.decode(data)).split("\n")
        self._partial = lines.pop()
        if len(self._partial) > 65536:  # a progress bar without end: only its last state can matter
            self._partial = self._partial[-4096:]
        for line in lines:
            self._line(line)

    @property
    def facts(self) -> LogFacts:
        found = dict(self._found)
        found.setdefault("load_s", self._weights_read_s)
        found.setdefault("compile_s", self._init_compile_s)
        return LogFacts(**found, engine_config=dict(self._config))

    def _line(self, raw: str) -> None:
        if " HTTP/1." in raw:  # an access log line: nearly all of a busy server's log
            return
        if any(words in raw for words, _ in _LINES):
            self.add(parse_line(raw))

    def add(self, line: LogLine) -> None:
        """Take one line that was already split."""
        for words, take in _LINES:
            if words in line.text:
                take(self, line)

    def _keep(self, name: str, value: Any, choose: Callable[[Any, Any], Any] | None = None) -> None:
        if name not in self._found:
            self._found[name] = value
        elif choose is not None:
            self._found[name] = choose(self._found[name], value)

    def _loaded(self, line: LogLine) -> None:
        if found := _LOADED.search(line.text):
            self._keep("weights_gib", float(found[1]), max)
            self._keep("load_s", float(found[2]), max)

    def _weights_read(self, line: LogLine) -> None:
        if found := _WEIGHTS_READ.search(line.text):
            self._weights_read_s = max(float(found[1]), self._weights_read_s or 0.0)

    def _kv_memory(self, line: LogLine) -> None:
        if found := _KV_MEMORY.search(line.text) or _KV_MEMORY_CPU.search(line.text):
            self._keep("kv_cache_gib", float(found[1]), min)

    def _kv_tokens(self, line: LogLine) -> None:
        if found := _KV_TOKENS.search(line.text):
            self._keep("kv_cache_tokens", _int(found[1]), min)

    def _concurrency(self, line: LogLine) -> None:
        if found := _CONCURRENCY.search(line.text):
            self._keep("max_concurrency", float(found[2]), min)
            self._keep("max_concurrency_at_tokens", _int(found[1]))

    def _graphs(self, line: LogLine) -> None:
        if found := _GRAPHS.search(line.text):
            self._keep("graph_capture_s", float(found[1]), max)
            self._keep("graph_gib", float(found[2]), max)

    def _compiled(self, line: LogLine) -> None:
        if found := _COMPILED.search(line.text):
            self._keep("compile_s", float(found[1]), max)

    def _init(self, line: LogLine) -> None:
        if found := _INIT.search(line.text):
            self._keep("init_s", float(found[1]), max)
            if found[2]:
                self._init_compile_s = max(float(found[2]), self._init_compile_s or 0.0)

    def _engine(self, line: LogLine) -> None:
        if found := _ENGINE.search(line.text):
            self._found["vllm_version"] = found[1]
            self._config |= engine_config(found[2])

    def _version(self, line: LogLine) -> None:
        if found := _API_VERSION.search(line.text) or _LOGO_VERSION.search(line.text):
            self._keep("vllm_version", found[1])

    def _serving(self, line: LogLine) -> None:
        if found := _SERVING.search(line.text):
            self._found["listening"] = True
            self._keep("served_url", found[1])

    def _startup_complete(self, line: LogLine) -> None:
        self._found["listening"] = True

    def _non_default(self, line: LogLine) -> None:
        if found := _NON_DEFAULT.search(line.text):
            self._keep("non_default_args", redact(found[1]))

    def _batched_tokens(self, line: LogLine) -> None:
        if found := _BATCHED_TOKENS.search(line.text):
            self._config.setdefault("max_num_batched_tokens", found[1])

    def _attention(self, line: LogLine) -> None:
        found = _ATTENTION.match(line.text[:300])
        if found and (found[2] != "backend." or (line.source or "").startswith(_PLATFORM_FILES)):
            self._keep("attention_backend", found[1])

    def _kernel(self, line: LogLine) -> None:
        if found := _LINEAR_KERNEL.search(line.text[:300]) or _CONVERTED.search(line.text[:300]):
            self._keep("quantization_kernel", found[1])


_LINES: tuple[tuple[str, Callable[[LogReader, LogLine], None]], ...] = (
    ("Model loading took", LogReader._loaded),
    ("Loading weights took", LogReader._weights_read),
    ("Available KV cache memory", LogReader._kv_memory),
    ("GiB for KV cache", LogReader._kv_memory),
    ("KV cache size:", LogReader._kv_tokens),
    ("Maximum concurrency for", LogReader._concurrency),
    ("Graph capturing finished", LogReader._graphs),
    ("torch.compile t", LogReader._compiled),
    ("init engine (profile", LogReader._init),
    ("LLM engine (v", LogReader._engine),
    (" version ", LogReader._version),
    ("Starting vLLM", LogReader._serving),
    ("Application startup complete.", LogReader._startup_complete),
    ("non-default args", LogReader._non_default),
    ("Chunked prefill is enabled", LogReader._batched_tokens),
    ("backend", LogReader._attention),
    (" for ", LogReader._kernel),
    (" kernel", LogReader._kernel),
)


def read_facts(text: str) -> LogFacts:
    """The facts of a whole log, its last line included even without a line end."""
    reader = LogReader()
    reader.feed((text + "\n").encode("utf-8", "replace"))
    return reader.facts


def engine_config(text: str) -> dict[str, str]:
    """`model='x', dtype=torch.bfloat16, compilation_config={…}, …` as names and values, quotes taken off.

    Values that hold commas in brackets or quotes stay whole.
    """
    config: dict[str, str] = {}
    for part in _top_level(text):
        name, equals, value = part.partition("=")
        if equals and name.strip().isidentifier():
            value = value.strip()
            quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
            config[name.strip()] = redact(value[1:-1] if quoted else value)
    return config


def _top_level(text: str) -> Iterator[str]:
    """Pieces between commas that stand in no bracket and no quotes."""
    depth, start, quote, escaped = 0, 0, "", False
    for index, char in enumerate(text):
        if quote:
            quote, escaped = ("" if char == quote and not escaped else quote), char == "\\" and not escaped
        elif char in "'\"":
            quote = char
        elif char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _int(text: str) -> int:
    return int(text.replace(",", ""))
