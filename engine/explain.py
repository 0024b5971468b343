"""What a vLLM log says: did the server start, and if not, why (`llmtune explain`)."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.failures.gpu_oom import OUT_OF_GPU_MEMORY
from engine.failures.lifetime import MORE_MEMORY
from engine.failures.rule import Around, Numbers, Rule
from engine.failures.table import RULES
from engine.failures.wording import fill, named_numbers
from engine.logs.log_facts import LogReader
from engine.logs.log_lines import LogLine, message_lines
from engine.logs.log_settings import asked_flags, gpu_total_gib
from engine.logs.root_cause import Root, root_exception
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


_DEATH = re.compile(r"EngineDeadError|EngineCore encountered an issue|died unexpectedly|EngineCore failed to start")
_FAILED = re.compile(
    _DEATH.pattern + r"|Engine core initialization failed|^Traceback \(most recent call last\)|^Killed$"
)
# The whole of what vLLM says where the engine was killed: once it serves, and while it loads.
_ENGINE_GONE = re.compile(r"Engine core proc(?:ess)? .{0,80}died unexpectedly|Engine core initialization failed")
_LONGEST = 4000  # characters of a line in which a cause is looked for: some patterns take the square of it
_COMMAND = re.compile(r"^# .* serve .*$", re.MULTILINE)  # what engine.server writes before each start
_SHUTDOWN = re.compile(r"\[shutdown\]|^Shutting down")
_INTERRUPTED = re.compile(r"^KeyboardInterrupt|received signal=SIG(?:TERM|INT)|Received SIG(?:TERM|INT)")
_HEALTH = re.compile(r'"GET /health HTTP/[\d.]+" (\d{3})')
_BROKEN_AFTER = 3  # answers in a row
_WARNING = re.compile(r"\w*Warning: ")  # of Python, on standard error
_FRAME = re.compile(r'^\s*File "[^"]*", line \d+, in (\w+)')
_FRAMES_ABOVE = 400  # lines of a traceback that are looked through for its functions


def explain(
    text: str,
    exit_code: int | None = None,
    *,
    known_flags: frozenset[str] | None = None,
    version: str | None = None,
    total_gib: float | None = None,
    oom_killed: bool | None = None,
) -> Explanation:
    """Outcome of a start, from its whole log so far; of several starts in one file (`# … serve …` above each) the last.

    `ready` stays ready after an ordinary shutdown and becomes `failed` when the engine died while it served, or when
    /health answers 5xx and no longer anything else. `starting` is a log that has neither become ready nor failed,
    unless the caller knows that the process ended (`exit_code`, as subprocess has it). `unknown` is a log in which
    vLLM has not spoken.

    What a caller knows besides makes remedies more exact: the flags that the installation has (without dashes), its
    version, the GPU's memory in GiB, whether the kernel has killed a process for want of memory since the start.
    """
    starts = [found.start() for found in _COMMAND.finditer(text)]
    return _Log(text[starts[-1] :] if starts else text, known_flags, version, total_gib, oom_killed).explain(exit_code)


class _Log:
    def __init__(
        self,
        text: str,
        known_flags: frozenset[str] | None,
        version: str | None,
        total_gib: float | None,
        oom_killed: bool | None,
    ) -> None:
        self.oom_killed = oom_killed
        self.raw = text.removesuffix("\n").split("\n") if text else []
        self.lines: list[LogLine] = []
        self.at: list[int] = []  # the index in `raw` of each of `lines`
        for index, raw in enumerate(self.raw):
            found = message_lines(raw)
            self.lines += found
            self.at += [index] * len(found)
        self.facts = self._facts_until(len(self.lines), None)
        self.known_flags = known_flags or _usage_flags(text)
        self.version = self.facts.vllm_version or version
        self.total_gib = total_gib or gpu_total_gib(text)
        self.flags = asked_flags(text, self.facts)

    def explain(self, exit_code: int | None) -> Explanation:
        ready_at = self._first(r"^Application startup complete\.", 0)
        if ready_at is not None:
            return self._after_ready(ready_at, exit_code)
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

    def _after_ready(self, ready_at: int, exit_code: int | None) -> Explanation:
        stopped_at = self._first(_SHUTDOWN, ready_at)
        end = len(self.lines) if stopped_at is None else stopped_at
        broke = exit_code not in (None, 0) and stopped_at is None
        broken = self._broken_health(ready_at, end)
        if not broke and broken is None and not self._any(_DEATH, ready_at, end):
            return Explanation("ready", self.facts)
        return self._failure(ready_at, end) or broken or self._unexplained(exit_code)

    def _broken_health(self, start: int, end: int) -> Explanation | None:
        answers = [(i, int(found[1])) for i in range(start, end) if (found := _HEALTH.search(self.lines[i].text[:400]))]
        last_good = max((at for at, (_, status) in enumerate(answers) if status < 500), default=-1)
        bad = answers[last_good + 1 :]
        if len(bad) < _BROKEN_AFTER:
            return None
        status = bad[-1][1]
        return self._failed(
            "health_broken",
            f"/health answers {status}, {len(bad)} times in a row: the engine behind it is gone.",
            "Stop the server and start it again; an engine that has died does not come back.",
            {"status": status, "answers": len(bad)},
            [i for i, _ in bad[:2]],
        )

    def _failure(self, start: int, end: int) -> Explanation | None:
        """The first cause between two lines that a rule knows, else the root exception in its own words."""
        indices = [
            i
            for i in range(start, end)
            if self.lines[i].level in (None, "ERROR", "CRITICAL") and not _WARNING.search(self.lines[i].text[:400])
        ]
        texts = [self.lines[i].text[:_LONGEST] for i in indices]
        joined = "\n".join(texts)
        starts = _line_starts(texts)
        matches = [(rule, found) for rule in RULES if (found := rule.pattern.search(joined))]
        root = root_exception(texts)
        if matches:
            rule, found = _most_telling(matches, starts)
            first, last = bisect_right(starts, found.start()) - 1, bisect_right(starts, found.end() - 1) - 1
            if rule.ending and root is not None and root.line < first and not root.lost_partner:
                return self._by_exception(root, indices)
            return self._by_rule(rule, found, indices[first : last + 1], serving=start > 0)
        return self._by_exception(root, indices) if root is not None else None

    def _by_exception(self, root: Root, indices: Sequence[int]) -> Explanation:
        return self._failed("unknown", root.cause, _READ_LOG, {}, [indices[at] for at in (*root.frame, root.line)])

    def _by_rule(self, rule: Rule, found: re.Match[str], lines: Sequence[int], serving: bool) -> Explanation:
        values: dict[str, Any] = {name: redact(value.strip()) for name, value in found.groupdict().items() if value}
        numbers = named_numbers(values)
        if rule.derive:
            for name, value in rule.derive(numbers, values, self._around(lines[0], serving)).items():
                if isinstance(value, int | float):
                    numbers[name] = value
                else:
                    values[name] = value
        values |= {
            name: format(number, "g") if isinstance(number, float) else number for name, number in numbers.items()
        }
        failure_class = values.get("class", rule.failure_class)
        return self._failed(failure_class, fill(rule.cause, values), fill(rule.remedy, values), numbers, lines)

    def _around(self, line: int, serving: bool) -> Around:
        return Around(
            facts=self._facts_until(line, self.lines[line]),
            flags=self.flags,
            frames=self._frames(line),
            serving=serving,
            known_flags=self.known_flags,
            gpu_total_gib=self.total_gib,
            version=self.version,
        )

    def _frames(self, end: int) -> tuple[str, ...]:
        """The functions of the traceback above a line, outermost first; of that line's process where it says which."""
        pid, names = self.lines[end].pid, []
        for index in range(end - 1, max(end - _FRAMES_ABOVE, 0) - 1, -1):
            line = self.lines[index]
            if pid is not None and line.pid not in (pid, None):
                continue
            if line.text.startswith("Traceback (most recent call last)"):
                break
            if frame := _FRAME.match(line.text[:1000]):
                names.append(frame[1])
        return tuple(reversed(names))

    def _unexplained(self, exit_code: int | None) -> Explanation:
        last = [i for i, line in enumerate(self.lines) if line.text.strip()][-3:]
        if exit_code in (-9, 137):
            return self._killed(last)
        if exit_code in (-15, -2, -1, 130, 143, 129):
            return self._failed("interrupted", "The server was told to stop.", "Start it again.", {}, last)
        if exit_code in (-7, 135):
            cause = "The server died of a bus error (signal 7), most often because shared memory is full."
            return self._failed("unknown", cause, "Start the container with --shm-size=8g, or --ipc=host.", {}, last)
        if exit_code is None:
            ended = "The engine process ended"
        elif (gone := self._first(_ENGINE_GONE, 0)) is not None:  # in a whole log, so nothing was cut off above it
            return self._engine_gone(gone)
        elif exit_code < 0:
            ended = f"The server was ended by signal {-exit_code}"
        else:
            ended = f"The server ended with exit status {exit_code}"
        return self._failed("unknown", f"{ended} and its log does not say why.", _READ_LOG, {}, last)

    def _killed(self, last: Sequence[int]) -> Explanation:
        """SIGKILL is the kernel's where memory ran out, which it counts, or somebody's."""
        if self.oom_killed is False:
            cause = "The server was killed (signal 9) by somebody: the kernel counts no process that ran out of memory."
            return self._failed("interrupted", cause, "Start it again.", {}, last)
        sure = "because" if self.oom_killed else "most likely because"
        cause = f"The server was killed (signal 9), {sure} the machine's memory ran out."
        return self._failed("host_oom", cause, MORE_MEMORY, {}, last)

    def _engine_gone(self, line: int) -> Explanation:
        """Nothing above says why: an exception is told, and with faulthandler a crash, so it was most likely killed."""
        if self.oom_killed:
            cause = "The engine process was killed (signal 9), because the machine's memory ran out."
            return self._failed("host_oom", cause, MORE_MEMORY, {}, [line])
        cause = "The engine process died without a word: it was killed, or it crashed."
        return self._failed("interrupted", cause, "Start it again.", {}, [line])

    def _failed(
        self, failure_class: str, cause: str, remedy: str, numbers: Numbers, lines: Sequence[int]
    ) -> Explanation:
        raw = [self.raw[index] for index in dict.fromkeys(self.at[line] for line in lines)]
        shown = tuple(redact(clean(each.rstrip("\r").rpartition("\r")[2], _LONGEST)) for each in raw)
        remedy = clean(redact(remedy), 400)
        return Explanation("failed", self.facts, failure_class, clean(redact(cause), 400), remedy, numbers, shown)

    def _facts_until(self, end: int, speaker: LogLine | None) -> LogFacts:
        """What the lines before `end` tell; those of other workers than `speaker` left out, since each is at a stage
        of its own."""
        reader = LogReader()
        ours = speaker.process if speaker is not None else None
        for line in self.lines[:end]:
            if ours and "Worker" in ours and line.process and "Worker" in line.process and line.process != ours:
                continue
            reader.add(line)
        return reader.facts

    def _first(self, pattern: str | re.Pattern[str], start: int) -> int | None:
        compiled = re.compile(pattern)
        return next((i for i in range(start, len(self.lines)) if compiled.search(self.lines[i].text)), None)

    def _any(self, pattern: re.Pattern[str], start: int, end: int) -> bool:
        return any(pattern.search(self.lines[i].text) for i in range(start, end))


def _most_telling(matches: list[tuple[Rule, re.Match[str]]], starts: Sequence[int]) -> tuple[Rule, re.Match[str]]:
    """The match with the earliest line, unless a later one says the same thing of GPU memory more exactly."""
    best = min(matches, key=lambda match: (match[0].failure_class == "unknown", bisect_right(starts, match[1].start())))
    if best[0].failure_class == OUT_OF_GPU_MEMORY:
        return next((match for match in matches if match[0].closer), best)
    return best


_USAGE_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]{2,60})")
_FEWEST_FLAGS = 20  # a usage text with fewer is that of the command above `serve`


def _usage_flags(text: str) -> frozenset[str] | None:
    """The flags that argparse's usage text lists above its error, or None if it lists hardly any."""
    begin = text.find("usage: ")
    error = text.find(": error: ", begin)
    if begin < 0 or error < 0:
        return None
    flags = frozenset(_USAGE_FLAG.findall(text[begin : text.rfind("\n", begin, error) + 1]))
    return flags if len(flags) >= _FEWEST_FLAGS else None


_READ_LOG = "Read the lines of the log above this one."


def _line_starts(texts: Sequence[str]) -> list[int]:
    starts, position = [], 0
    for text in texts:
        starts.append(position)
        position += len(text) + 1
    return starts
