"""Constraints written as text: `"layers * width ** 2 <= 2 ** 17 and (model != 'svm' or C < 10)"`.

The text is read by Python's parser, but never run: only what is listed here has a meaning, so that
files from others can be trusted with it.

    names of parameters and constants; numbers, strings, True, False, None
    + - * / // % **, < <= > >= == !=, in and not in (a list of values), and, or, not
    abs(a), sqrt(a), log(a), exp(a), min(a, b, ...), max(a, b, ...)

Numbers are float64; a comparison with what is not a number, such as the root of -1, is false. A
constraint about parameters that may be inactive holds where one of them is.
"""

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from amortes.errors import ConfigError, shown

LONGEST = 1000
BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "log": np.log,
    "exp": np.exp,
    "min": lambda *args: functools.reduce(np.minimum, args),
    "max": lambda *args: functools.reduce(np.maximum, args),
}


@dataclass(frozen=True)
class Expression:
    """A condition on the values of a config, as text."""

    text: str

    vectorized: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or len(self.text) > LONGEST:
            raise ConfigError(
                f"constraints: expected a string of at most {LONGEST} characters, not "
                f"{shown(self.text)}."
            )
        try:
            with np.errstate(all="ignore"):
                _evaluate(self._tree, dict.fromkeys(self.names, np.ones(1)))
        except RecursionError:
            raise ConfigError(
                f"constraints: {shown(self.text)} is nested too deeply; split it into several."
            ) from None
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, ConfigError):
                raise
            # Else it may be about text; `check` knows.

    @cached_property
    def names(self) -> frozenset[str]:
        """The parameters and constants it is about."""
        nodes = list(ast.walk(self._tree))
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        names = [node for node in nodes if isinstance(node, ast.Name) and node not in called]
        return frozenset(node.id for node in names)

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise `ConfigError` unless it can be evaluated for such values, arrays of one by name."""
        if unknown := sorted(self.names - values.keys()):
            raise ConfigError(
                f"constraints: {self.text!r} uses {unknown[0]}, which is not a parameter; choose "
                f"from {', '.join(values)}."
            )
        if not self.names:
            raise ConfigError(f"constraints: {self.text!r} does not use any parameter.")
        self.mask(values, 1)

    def mask(self, values: Mapping[str, Any], n: int) -> np.ndarray:
        """Which of n configs, given as arrays of values by name, satisfy it: `n`, bool."""
        arrays = {name: _number(values[name]) for name in self.names}
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(_evaluate(self._tree, arrays))
        except (TypeError, ValueError, OverflowError) as error:
            raise ConfigError(f"constraints: {self.text!r} cannot be evaluated: {error}.") from None
        if result.dtype != np.bool_:
            raise ConfigError(
                f"constraints: {self.text!r} must be a comparison that is true or false."
            )
        return np.broadcast_to(result, (n,))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready fields."""
        return {"expression": self.text}

    @cached_property
    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ConfigError(f"constraints: {self.text!r} is not valid: {error}.") from None


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """The value of a node; a `ConfigError` for what has no meaning here."""
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return _number(node.value)
        case ast.UnaryOp(op=ast.Not()):
            return np.logical_not(_truth(node.operand, values))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            operand = _evaluate(node.operand, values)
            return -operand if isinstance(node.op, ast.USub) else operand
        case ast.BinOp() if type(node.op) in BINARY:
            left, right = (_evaluate(side, values) for side in (node.left, node.right))
            return BINARY[type(node.op)](left, right)
        case ast.BoolOp():
            combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return functools.reduce(combine, [_truth(part, values) for part in node.values])
        case ast.Compare():
            return _compare(node, values)
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS and node.args:
            return FUNCTIONS[name](*(_evaluate(argument, values) for argument in node.args))
    raise _no(node)


def _compare(node: ast.Compare, values: Mapping[str, Any]) -> Any:
    left, result = _evaluate(node.left, values), np.True_
    for op, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.List | ast.Tuple):
            equal = [left == _evaluate(element, values) for element in right.elts]
            among = functools.reduce(np.logical_or, equal, np.False_)
            holds = np.logical_not(among) if isinstance(op, ast.NotIn) else among
        elif type(op) in COMPARE:
            other = _evaluate(right, values)
            holds, left = COMPARE[type(op)](left, other), other
        else:
            raise _no(node)
        result = np.logical_and(result, holds)
    return result


def _truth(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """The value of a part that is true or false."""
    value = np.asarray(_evaluate(node, values))
    if value.dtype != np.bool_:
        raise TypeError(f"{ast.unparse(node)} is not true or false")
    return value


def _number(value: Any) -> Any:
    """Numbers as float64, which do not overflow with an error; others as they are."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind in "iuf" else value


def _no(node: ast.AST) -> ConfigError:
    return ConfigError(
        f"constraints: {ast.unparse(node)!r} is not allowed in a constraint. Use names of "
        f"parameters, numbers, strings, arithmetic, comparisons, in [...], and, or, not, and "
        f"{', '.join(FUNCTIONS)}."
    )
