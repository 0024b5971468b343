"""The conditions of `[[skip]] when = "max-num-batched-tokens < max-num-seqs"`: read once, asked of every point.

    or    := and {"or" and}          compare := sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    and   := not {"and" not}         sum     := term {("+" | "-") term}
    not   := "not" not | compare     term    := unary {("*" | "/") unary}
    unary := "-" unary | number | text | true | false | flag | "(" or ")"

A flag is written as on vLLM's command line without its leading dashes. A dash directly before a letter belongs to the
name, so a minus between two flags needs spaces around it.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)
        |(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z][A-Za-z0-9_]*)*)
        |(?P<text>"[^"]*"|'[^']*')
        |(?P<op><=|>=|==|!=|[<>+\-*/()]))""",
    re.VERBOSE,
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_DEEPEST = 50

Value = bool | float | str | None
Node = Callable[[Mapping[str, Any]], Value]


class ConditionError(ValueError):
    """A condition that cannot be read: one line with the column."""


@dataclass(frozen=True, slots=True)
class Condition:
    text: str
    node: Node

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the condition is true of `values` (flag → value). What hangs on a flag without a value is not."""
        return self.node(values) is True


def read_condition(text: str) -> Condition:
    """Parse `text`; ConditionError names the column of what cannot be read."""
    return Condition(text, _Reader(text).whole())


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                column = position + len(text[position:]) - len(text[position:].lstrip()) + 1
                raise ConditionError(f"column {column}: cannot read {text[column - 1]!r}")
            kind = match.lastgroup or ""
            self._tokens.append((kind, match[kind], match.start(kind) + 1))
            position = match.end()
        self._end = len(text) + 1
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._or()
        kind, token, column = self._peek()
        if kind:
            raise ConditionError(f"column {column}: {token!r} does not belong here")
        return node

    def _peek(self) -> tuple[str, str, int]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("", "", self._end)

    def _take(self, *tokens: str) -> str | None:
        kind, token, _ = self._peek()
        if kind in ("op", "name") and token in tokens:
            self._next += 1
            return token
        return None

    def _or(self) -> Node:
        node = self._and()
        while self._take("or"):
            node = _either(node, self._and(), decides=True)
        return node

    def _and(self) -> Node:
        node = self._not()
        while self._take("and"):
            node = _either(node, self._not(), decides=False)
        return node

    def _not(self) -> Node:
        if self._take("not"):
            inner = self._deeper(self._not)
            return lambda values: None if (value := _truth(inner(values))) is None else not value
        return self._compare()

    def _compare(self) -> Node:
        left = self._sum()
        if symbol := self._take(*_COMPARE):
            return _comparison(_COMPARE[symbol], left, self._sum())
        return left

    def _sum(self) -> Node:
        node = self._term()
        while symbol := self._take("+", "-"):
            node = _arithmetic(operator.add if symbol == "+" else operator.sub, node, self._term())
        return node

    def _term(self) -> Node:
        node = self._unary()
        while symbol := self._take("*", "/"):
            node = _arithmetic(operator.mul if symbol == "*" else operator.truediv, node, self._unary())
        return node

    def _unary(self) -> Node:
        if self._take("-"):
            return _arithmetic(operator.sub, lambda values: 0.0, self._deeper(self._unary))
        if self._take("("):
            node = self._deeper(self._or)
            if not self._take(")"):
                raise ConditionError(f"column {self._peek()[2]}: a closing bracket is missing")
            return node
        kind, token, column = self._peek()
        if kind in ("", "op") or token in ("and", "or", "not"):
            raise ConditionError(f"column {column}: a flag, a number or a text is missing")
        self._next += 1
        return _leaf(kind, token)

    def _deeper(self, rule: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ConditionError(f"column {self._peek()[2]}: nested too deeply")
        node = rule()
        self._depth -= 1
        return node


def _leaf(kind: str, token: str) -> Node:
    if kind == "number":
        number = float(token)
        return lambda values: number
    if kind == "text":
        return lambda values: token[1:-1]
    if token.lower() in ("true", "false"):
        return lambda values: token.lower() == "true"
    name = token.replace("_", "-")
    return lambda values: values.get(name)


def _truth(value: Value) -> bool | None:
    return None if value is None else bool(value)


def _either(left: Node, right: Node, *, decides: bool) -> Node:
    """Kleene's `or` (decides=True) and `and` (False): an unknown side matters only where the other does not decide."""

    def node(values: Mapping[str, Any]) -> Value:
        sides = (_truth(left(values)), _truth(right(values)))
        if decides in sides:
            return decides
        return None if None in sides else not decides

    return node


def _comparison(compare: Callable[[Any, Any], bool], left: Node, right: Node) -> Node:
    def node(values: Mapping[str, Any]) -> Value:
        a, b = left(values), right(values)
        if a is None or b is None:
            return None
        if isinstance(a, str) != isinstance(b, str):
            return compare is operator.ne if compare in (operator.eq, operator.ne) else None
        return compare(a, b)

    return node


def _arithmetic(combine: Callable[[Any, Any], float], left: Node, right: Node) -> Node:
    def node(values: Mapping[str, Any]) -> Value:
        a, b = left(values), right(values)
        if not isinstance(a, int | float) or not isinstance(b, int | float):
            return None
        try:
            return combine(a, b)
        except ZeroDivisionError:
            return None

    return node
