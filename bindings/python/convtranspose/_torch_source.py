"""Tells from the code of a module which of its children it only ever calls as a whole."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

_LISTS = (torch.nn.ModuleList, torch.nn.ModuleDict)
_CHILDREN = {"children", "named_children", "modules", "named_modules", "_modules", "get_submodule"}


@dataclasses.dataclass
class Uses:
    """Names of children: those that are only called, and lists whose elements are only called."""

    called: set[str] = dataclasses.field(default_factory=set)
    elements_called: set[str] = dataclasses.field(default_factory=set)


def _methods(kind: Any) -> dict[str, list[ast.AST]]:
    """The functions in the classes that a module's class derives from, by their names. OSError: one has no source."""
    methods: dict[str, list[ast.AST]] = {}
    for base in kind.__mro__[:kind.__mro__.index(torch.nn.Module)]:
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                methods.setdefault(node.name, []).append(node)
    return methods


def _is_self(node: Any) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _reached(methods: dict[str, list[ast.AST]]) -> list[ast.AST]:
    """The functions that forward may run."""
    names, reached = ["forward"], []
    for name in names:
        for function in methods.get(name, []):
            reached.append(function)
            own = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute) and _is_self(node.value)}
            names += [other for other in sorted(own) if other in methods and other not in names]
    return reached


class _Function:
    """One function, and the nodes that its nodes are a part of."""

    def __init__(self, function: ast.AST) -> None:
        self.nodes = list(ast.walk(function))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    def is_called(self, node: Any) -> bool:
        parent = self.parents.get(node)
        return isinstance(parent, ast.Call) and parent.func is node

    def are_elements_called(self, node: Any) -> bool:
        """Whether a list is only indexed or gone through by a loop, and what that gives only called."""
        parent: Any = self.parents.get(node)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return self.is_called(parent)
        place = None
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and node in parent.args:
            if parent.func.id not in ("enumerate", "zip"):
                return False
            place = 1 if parent.func.id == "enumerate" else parent.args.index(node)
            node, parent = parent, self.parents.get(parent)
        if not isinstance(parent, (ast.For, ast.comprehension)) or parent.iter is not node:
            return False
        target: Any = parent.target
        if place is not None:
            if not isinstance(target, ast.Tuple) or place >= len(target.elts):
                return False
            target = target.elts[place]
        if not isinstance(target, ast.Name):
            return False
        reads = [n for n in self.nodes if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)]
        return all(self.is_called(read) for read in reads)


def uses_of_children(module: Any) -> Uses:
    """Says what the code of a module, and of the classes that it derives from, does with its children when forward is called.

    Both sets are empty if the code is not to be had, or reaches children in other ways than by their names.
    """
    children = dict(module.named_children())
    if type(module) is torch.nn.Sequential:
        return Uses(called=set(children))
    try:
        functions = [_Function(function) for function in _reached(_methods(type(module)))]
    except (OSError, TypeError, SyntaxError, ValueError):
        return Uses()
    if "forward" in vars(module) or not functions:
        return Uses()
    uses = Uses(set(children), {name for name, child in children.items() if isinstance(child, _LISTS)})
    for function in functions:
        for node in function.nodes:
            parent = function.parents.get(node)
            if _is_self(node) and not isinstance(parent, ast.Attribute):
                return Uses()
            if not isinstance(node, ast.Attribute) or not _is_self(node.value):
                continue
            if node.attr in _CHILDREN:
                return Uses()
            if not function.is_called(node):
                uses.called.discard(node.attr)
            if not function.are_elements_called(node):
                uses.elements_called.discard(node.attr)
    return uses
