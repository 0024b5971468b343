"""What a vLLM log says: did the server start, and if not, why (`llmtune explain`)."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.failures import OUT_OF_GPU_MEMORY, RULES, Numbers, Rule, memory_stage
from engine.log_facts import LogReader
from engine.log_lines import split_lines
from engine.records import LogFacts, Outcome
from engine.text import clean, redact

FACT_NAMES = (
    "weights_gib",
    "load_s",
    "kv_cache_gib",
    "kv_cache_tokens",
    "max_concurrency",
    "max_concurrency_at_tokens",
    "graph_capture_s",
    "graph_gib",
    "compile_s",
    "init_s",
    "attention_backend",
    "quantization_kernel",
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """`failure_class`, `cause` and `remedy` are None unless `outcome` is "failed"; `lines` are the log lines that show
    the cause, as they stand in the log but cleaned and without secrets."""

    outcome: Outcome
    facts: LogFacts
    failure_class: str | None = None
    cause: str | None = None
    remedy: str | None = None
    numbers: Numbers = field(default_factory=dict)
    lines: tuple[str, ...] = ()

    @property
    def vllm_version(self) -> str | None:
        return self.facts.vllm_version

    def to_json(self) -> dict[str, Any]:
        """The object that `explain --json` prints."""
        return {
            "schema": 1,
            "vllm_version": self.vllm_version,
            "outcome": self.outcome,
            "class": self.failure_class,
            "cause": self.cause,
            "numbers": dict(self.numbers),
            "remedy": self.remedy,
            "lines": list(self.lines),
            "facts": {name: getattr(self.facts, name) for name in FACT_NAMES},
        }


# These only pass on that something else went wrong; the root stands above them, or nowhere.
_WRAPPERS = re.compile(
    r"Engine core initialization failed|EngineCore failed to start|WorkerProc initialization failed|EngineDeadError|"
    r"EngineCore encountered an issue|EngineGenerateError|[Ee]ngine core proc(?:ess)? .* died|CancelledError|"
    r"SystemExit|Engine process failed to start|KeyboardInterrupt|[Ww]orker proc .* died"
)
_DEATH = re.compile(r"EngineDeadError|EngineCore encountered an issue|died unexpectedly|EngineCore failed to start")
_FAILED = re.compile(
    _DEATH.pattern + r"|Engine core initialization failed|^Traceback \(most recent call last\)|^Killed$"
)
_LONGEST = 4000  # characters of a line in which a cause is looked for: some patterns take the square of it
_COMMAND = re.compile(r"^# .* serve .*$", re.MULTILINE)  # what engine.server writes before each start
_SHUTDOWN = re.compile(r"\[shutdown\]|^Shutting down")
_INTERRUPTED = re.compile(r"^KeyboardInterrupt|received signal=SIG(?:TERM|INT)|Received SIG(?:TERM|INT)")
_PYDANTIC = re.compile(r"^\s*Value error, (.*?)(?: \[type=|$)")
_EXCEPTION = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Exit|Interrupt))(?:: (.*))?$")
_USAGE = re.compile(r"^[\w. -]+: error: (.+)")


def explain(text: str, exit_code: int | None = None) -> Explanation:
    """Outcome of a start, from its whole log so far; of several starts in one file (`# … serve …` above each) the last.

    `ready` stays ready after an ordinary shutdown and becomes `failed` when the engine died while it served. `starting`
    is a log that has neither become ready nor failed, unless the caller knows that the process ended (`exit_code`, as
    subprocess has it). `unknown` is a log in which vLLM has not spoken.
    """
    starts = [found.start() for found in _COMMAND.finditer(text)]
    return _Log(text[starts[-1] :] if starts else text).explain(exit_code)


class _Log:
    def __init__(self, text: str) -> None:
        self.raw = text.removesuffix("\n").split("\n") if text else []
        self.lines = split_lines(text)
        self.facts = self._facts_until(len(self.lines))

    def explain(self, exit_code: int | None) -> Explanation:
        ready_at = self._first(r"^Application startup complete\.", 0)
        if ready_at is not None:
            stopped_at = self._first(_SHUTDOWN, ready_at)
            end = len(self.lines) if stopped_at is None else stopped_at
            broke = exit_code not in (None, 0) and stopped_at is None
            if not broke and not self._any(_DEATH, ready_at, end):
                return Explanation("ready", self.facts)
            return self._failure(ready_at, end) or self._unexplained(exit_code)
        if failure := self._failure(0, len(self.lines)):
            return failure
        if (interrupted := self._first(_INTERRUPTED, 0)) is not None:
            return self._failed("interrupted", "The start was interrupted.", "Start it again.", {}, [interrupted])
        if exit_code is not None or self._any(_FAILED, 0, len(self.lines)):
            return self._unexplained(exit_code)
        if self.facts.listening:
            return Explanation("ready", self.facts)
        spoken = self.facts != LogFacts() or any(line.time for line in self.lines)
        return Explanation("starting" if spoken else "unknown", self.facts)

    def _failure(self, start: int, end: int) -> Explanation | None:
        """The first cause between two lines that a rule knows, else the root exception in its own words."""
        indices = [i for i in range(start, end) if self.lines[i].level in (None, "ERROR", "CRITICAL")]
        texts = [self.lines[i].text[:_LONGEST] for i in indices]
        joined = "\n".join(texts)
        starts = _line_starts(texts)
        matches = [(rule, found) for rule in RULES if (found := rule.pattern.search(joined))]
        if matches:
            rule, found = min(matches, key=lambda match: bisect_right(starts, match[1].start()))
            first, last = bisect_right(starts, found.start()) - 1, bisect_right(starts, found.end() - 1) - 1
            return self._by_rule(rule, found, indices[first : last + 1], serving=start > 0)
        if (root := _root_exception(texts)) is not None:
            cause, line = root
            return self._failed("unknown", cause, _READ_LOG, {}, [indices[line]])
        return None

    def _by_rule(self, rule: Rule, found: re.Match[str], lines: Sequence[int], serving: bool) -> Explanation:
        values: dict[str, Any] = {name: redact(value.strip()) for name, value in found.groupdict().items() if value}
        facts = self._facts_until(lines[0])
        numbers = _numbers(values)
        for name, fact in (rule.facts or {}).items():
            if (value := getattr(facts, fact)) is not None:
                numbers[name] = value
        if rule.derive:
            numbers |= rule.derive(numbers)
        failure_class = rule.failure_class
        if failure_class == OUT_OF_GPU_MEMORY:
            failure_class, values["stage"], values["stage_remedy"] = memory_stage(facts)
            if serving:
                failure_class, values["stage"] = "unknown", "while serving"
        values |= {
            name: format(number, "g") if isinstance(number, float) else number for name, number in numbers.items()
        }
        return self._failed(failure_class, _fill(rule.cause, values), _fill(rule.remedy, values), numbers, lines)

    def _unexplained(self, exit_code: int | None) -> Explanation:
        last = [i for i, line in enumerate(self.lines) if line.text.strip()][-3:]
        if exit_code in (-9, 137):
            cause = "The server was killed (signal 9), most likely because the machine's memory ran out."
            return self._failed("host_oom", cause, "Give the container more memory.", {}, last)
        if exit_code in (-15, -2, 130, 143):
            return self._failed("interrupted", "The server was told to stop.", "Start it again.", {}, last)
        ended = (
            f"The server ended with exit status {exit_code}" if exit_code is not None else "The engine process ended"
        )
        return self._failed("unknown", f"{ended} and its log does not say why.", _READ_LOG, {}, last)

    def _failed(
        self, failure_class: str, cause: str, remedy: str, numbers: Numbers, lines: Sequence[int]
    ) -> Explanation:
        shown = tuple(redact(clean(self.raw[i].rstrip("\r").rpartition("\r")[2])) for i in lines)
        return Explanation("failed", self.facts, failure_class, clean(cause, 400), remedy, numbers, shown)

    def _facts_until(self, end: int) -> LogFacts:
        reader = LogReader()
        for line in self.lines[:end]:
            reader.add(line)
        return reader.facts

    def _first(self, pattern: str | re.Pattern[str], start: int) -> int | None:
        compiled = re.compile(pattern)
        return next((i for i in range(start, len(self.lines)) if compiled.search(self.lines[i].text)), None)

    def _any(self, pattern: re.Pattern[str], start: int, end: int) -> bool:
        return any(pattern.search(self.lines[i].text) for i in range(start, end))


_READ_LOG = "Read the lines of the log above this one."


def _root_exception(texts: Sequence[str]) -> tuple[str, int] | None:
    """The exception that began it, and its line: the first that does not merely pass on another's failure.

    Of a chain joined by "During handling of the above exception" the last is meant for the reader (a KeyError turned
    into words), of one joined by "direct cause" the first.
    """
    found: tuple[str, int] | None = None
    for index, text in enumerate(texts):
        if _WRAPPERS.search(text):
            continue
        if text.startswith("During handling of the above exception"):
            found = None
        elif found is None:
            if usage := _USAGE.match(text):
                found = usage[1], index
            elif pydantic := _PYDANTIC.match(text):
                found = pydantic[1], index
            elif (exception := _EXCEPTION.match(text)) and exception[1] != "ValidationError":
                found = text.strip(), index
    return (redact(found[0]), found[1]) if found else None


def _line_starts(texts: Sequence[str]) -> list[int]:
    starts, position = [], 0
    for text in texts:
        starts.append(position)
        position += len(text) + 1
    return starts


_GIB = {"KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0}


def _numbers(values: Mapping[str, str]) -> Numbers:
    return dict(_named_numbers(values))


def _named_numbers(values: Mapping[str, str]) -> Iterator[tuple[str, float | int]]:
    for name, value in values.items():
        if name.endswith("_size"):
            amount, unit = value.split()
            yield name.removesuffix("_size") + "_gib", round(float(amount) * _GIB[unit], 3)
        elif re.fullmatch(r"-?\d{1,15}(?:\.\d{1,9})?", value):
            number = float(value)
            whole = number.is_integer() and not name.endswith("_gib")
            yield name, int(number) if whole else number


def _fill(template: str, values: Mapping[str, Any]) -> str:
    """The template with its fields; a part in double brackets only where all its fields are there."""

    def part(match: re.Match[str]) -> str:
        names = re.findall(r"\{(\w+)\}", match[1])
        return match[1] if all(name in values for name in names) else ""

    return re.sub(r"\[\[(.*?)\]\]", part, template).format_map(values)
