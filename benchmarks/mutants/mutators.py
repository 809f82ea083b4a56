"""Small faults in the source of a module: one changed operator, constant, argument or statement at a time."""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
PAIRS = (
    ("mean", "sum"), ("min", "max"), ("amin", "amax"), ("argmin", "argmax"), ("minimum", "maximum"), ("any", "all"),
    ("floor", "ceil"), ("sin", "cos"), ("zeros", "ones"), ("zeros_like", "ones_like"),
)  # fmt: skip
OPPOSITES = {name: other for pair in PAIRS for name, other in (pair, pair[::-1])}
SYMMETRIC = {"min", "max", "minimum", "maximum", "union", "isclose", "logaddexp", "lcm", "gcd", "corrcoef"}
# What only names a seed, the line that a warning shows, or a promise of the code to itself, as an assertion does:
NEUTRAL_ARGUMENTS = {"strict", "stacklevel", "random_state"}
NEUTRAL_CALLS = {"manual_seed", "default_rng"}  # of a constant
NEUTRAL_DEFAULTS = {"seed"}
SORTS = {"sort", "argsort"}  # whose kind is "stable", of which the first letter counts
DOUBLED_FROM = 10  # smaller numbers are counted on by one, larger ones are tuned: twice as much is a fault, one is not


@dataclass(frozen=True)
class Mutant:
    """A module with one fault."""

    module: str  # path below the package
    function: str  # that holds the fault; "" at the top of the module
    change: str  # the changed lines, before and after
    lines: frozenset[int] = field(repr=False)  # a test that notices the fault runs one of them
    source: str = field(repr=False)
    is_definition: bool = field(default=False, repr=False)  # of a constant, a field, a default: set at import

    @property
    def key(self) -> str:
        """A name that stays the same while the function does."""
        return f"{self.function}: {self.change}" if self.function else self.change

    @property
    def digest(self) -> str:
        """A hash of the module and the key."""
        return hashlib.sha256(f"{self.module}\n{self.key}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Site:
    """A place in the source: an expression or statement, and what is around it."""

    node: ast.expr | ast.stmt
    function: str
    statement: ast.stmt
    is_in_function: bool
    is_condition: bool


def find_mutants(module: str, source: str) -> list[Mutant]:
    """Return every mutant of a module, in the order of the source, each change of a function once."""
    tree = ast.parse(source)
    mutants: dict[str, Mutant] = {}
    for site in _sites(tree, "", None, in_function=False):
        for text in replacements(site.node, is_condition=site.is_condition):
            mutated, change = _splice(source, site.node, text)
            is_definition = not site.is_in_function or isinstance(site.statement, ast.FunctionDef)
            mutant = Mutant(module, site.function, change, _lines(site, tree), mutated, is_definition)
            mutants.setdefault(mutant.key, mutant)
    return list(mutants.values())


def _sites(node: ast.AST, function: str, statement: ast.stmt | None, *, in_function: bool) -> Iterator[Site]:
    """Yield what runs, depth first: no annotations, imports, assertions, docstrings, and no text of messages."""
    inside = in_function or isinstance(node, ast.FunctionDef)
    test = getattr(node, "test", None) if isinstance(node, ast.If | ast.While) else None
    for child in _children(node):
        name, around = function, child if isinstance(child, ast.stmt) else statement
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{function}.{child.name}".lstrip(".")
        if around is not None and isinstance(child, ast.expr | ast.stmt):
            yield Site(child, name, around, inside, child is test or child in getattr(node, "ifs", []))
        yield from _sites(child, name, around, in_function=inside)


def _children(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that run."""
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
        return []
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return []
    if isinstance(node, ast.FunctionDef):
        return [*node.decorator_list, *_defaults(node.args), *node.body]
    if isinstance(node, ast.Call):
        return _call_parts(node)
    if isinstance(node, ast.AnnAssign):
        return [] if node.value is None else [node.value]
    return list(ast.iter_child_nodes(node))


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    """Return the defaults of a function, without those of seeds."""
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)][::-1]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return [default for argument, default in pairs if argument.arg not in NEUTRAL_DEFAULTS]


def _call_parts(node: ast.Call) -> list[ast.AST]:
    """Return the function and the arguments of a call, without neutral ones."""
    name = _name(node.func)
    neutral = NEUTRAL_ARGUMENTS | ({"kind"} if name in SORTS else set())
    args = [a for a in node.args if not (name in NEUTRAL_CALLS and isinstance(a, ast.Constant))]
    return [node.func, *args, *(k for k in node.keywords if k.arg not in neutral)]


def _lines(site: Site, tree: ast.Module) -> frozenset[int]:
    """Return the lines of the statement; of a block those of the node, of a default those of its function.

    Outside of functions these are the lines of the functions that name what the statement defines, or of all.
    """
    if site.is_in_function:
        is_block = isinstance(site.statement, ast.If | ast.For | ast.While | ast.With | ast.Try)
        return _span(site.node if is_block else site.statement)
    target = getattr(site.statement, "target", None) or (getattr(site.statement, "targets", None) or [None])[0]
    name = getattr(target, "id", None)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    users = [f for f in functions if any(name == _name(part) for part in ast.walk(f))] if name else []
    return frozenset().union(*map(_span, users or functions))


def _name(node: ast.AST) -> str | None:
    return getattr(node, "id", getattr(node, "attr", None))


def _span(node: ast.expr | ast.stmt) -> frozenset[int]:
    return frozenset(range(node.lineno, int(node.end_lineno or node.lineno) + 1))


def replacements(node: ast.AST, *, is_condition: bool = False) -> list[str]:
    """Return the source of what a node may wrongly be instead."""
    if is_condition and isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.NamedExpr):
        return [f"(not ({ast.unparse(node)}))"]
    if isinstance(node, ast.Constant):
        return _other_constants(node.value)
    if isinstance(node, ast.Compare):
        return _other_comparisons(node)
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_type_union(node):
        return [_changed(node, op=ARITHMETIC[type(node.op)]())]
    if isinstance(node, ast.UnaryOp):
        return [f"({ast.unparse(node.operand)})"]
    if isinstance(node, ast.BoolOp):
        return [_changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())]
    if isinstance(node, ast.IfExp):
        return [_changed(node, body=node.orelse, orelse=node.body)]
    if isinstance(node, ast.Call):
        return _other_calls(node)
    return _other_statements(node) if isinstance(node, ast.stmt) else []


def _changed(node: ast.expr, **fields: object) -> str:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return f"({ast.unparse(other)})"


def _other_constants(value: object) -> list[str]:
    if isinstance(value, bool):
        return [repr(not value)]
    if isinstance(value, int):
        return [repr(value + 1 if abs(value) < DOUBLED_FROM else 2 * value)]
    if isinstance(value, float):
        return [repr(value + 1 if abs(value) < 1 else 2 * value)]
    is_word = isinstance(value, str) and re.fullmatch(r"[\w-]+", value)
    return [repr(f"{value}_")] if is_word else []  # names and keys; the text of messages is free


def _other_comparisons(node: ast.Compare) -> list[str]:
    return [
        _changed(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])
        for i, op in enumerate(node.ops)
        for other in COMPARISONS[type(op)]
    ]


def _is_type_union(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.BitOr) and bool(re.search(r"\bNone\b|^[A-Z]|\| [A-Z]", ast.unparse(node)))


def _other_calls(node: ast.Call) -> list[str]:
    """Return a call of the opposite function, and one with the first two arguments swapped."""
    others = []
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in OPPOSITES and isinstance(node.func, ast.Attribute):
        others.append(_changed(node, func=ast.Attribute(node.func.value, OPPOSITES[name], ast.Load())))
    elif name in {"min", "max", "any", "all"}:
        others.append(_changed(node, func=ast.Name(OPPOSITES[name], ast.Load())))
    first, second = (*node.args[:2], None, None)[:2]
    is_swap = first is not None and second is not None and name not in SYMMETRIC
    if is_swap and not any(isinstance(a, ast.Constant | ast.Starred | ast.Lambda) for a in (first, second)):
        others.append(_changed(node, args=[second, first, *node.args[2:]]))
    return others


def _other_statements(node: ast.stmt) -> list[str]:
    """Return a statement left out, or a condition negated."""
    if isinstance(node, ast.AugAssign | ast.Raise | ast.Delete):
        return ["pass"]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ["pass"]
    if isinstance(node, ast.Assign):
        read = {ast.unparse(part) for part in ast.walk(node.value) if isinstance(part, ast.expr)}
        written = {ast.unparse(target) for target in node.targets}
        is_update = written & read or any(isinstance(t, ast.Attribute | ast.Subscript) for t in node.targets)
        return ["pass"] if is_update else []
    if isinstance(node, ast.Break | ast.Continue):
        return ["break" if isinstance(node, ast.Continue) else "continue"]
    return []


def _splice(source: str, node: ast.expr | ast.stmt, text: str) -> tuple[str, str]:
    """Return the source with other text in the place of a node, and the changed lines before and after."""
    lines = source.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, int(node.end_lineno or node.lineno) - 1
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    before, after = b"".join(lines[first : last + 1]), head + text.encode() + tail
    mutated = b"".join([*lines[:first], after, *lines[last + 1 :]])
    return mutated.decode(), f"{_without_comments(before)} -> {_without_comments(after)}"


def _without_comments(code: bytes) -> str:
    return " ".join(re.sub(r" {2,}# .*", "", code.decode()).split())
