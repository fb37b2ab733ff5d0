"""Tells from the code of a module which of its children it only ever calls as a whole."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
import types
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

_LISTS = (torch.nn.ModuleList, torch.nn.ModuleDict)
_CHILDREN = {"children", "named_children", "modules", "named_modules", "_modules", "get_submodule"}
_TENSORS = {"parameters", "named_parameters", "_parameters", "get_parameter", "buffers", "named_buffers", "_buffers", "get_buffer",
            "state_dict"}


@dataclasses.dataclass
class Uses:
    """Names of children: those that are only called, and lists whose elements are only called."""

    called: set[str] = dataclasses.field(default_factory=set)
    elements_called: set[str] = dataclasses.field(default_factory=set)


def _methods(kind: Any) -> dict[str, list[_Function]]:
    """The methods of the classes that a module's class derives from, by their names. OSError: the source of one is not there."""
    methods: dict[str, list[_Function]] = {}
    for base in kind.__mro__:
        if base in (torch.nn.Module, object):
            continue
        definition: Any = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        own = [node for node in definition.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        given = {name for name, value in vars(base).items() if inspect.isfunction(value) and not name.startswith("__")}
        if not given.issubset(node.name for node in own):
            raise OSError(f"{base.__name__} has functions that its code does not define")
        for node in own:
            methods.setdefault(node.name, []).append(_Function(node))
    return methods


def _reached(methods: dict[str, list[_Function]]) -> list[_Function]:
    """The functions that forward may run."""
    names, reached = ["forward"], []
    for name in names:
        for function in methods.get(name, []):
            reached.append(function)
            own = {node.attr for node in function.nodes if isinstance(node, ast.Attribute) and function.is_self(node.value)}
            names += [other for other in sorted(own) if other in methods and other not in names]
    return reached


def _lead_to_modules(values: Any) -> bool:
    """Whether attributes that PyTorch does not register lead to modules: by themselves, their elements, or what functions hold."""
    pending, seen = list(values), set()
    for value in pending:
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.nn.Module):
            return True
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, (list, tuple, set)):
            pending += value
        elif isinstance(value, types.MethodType):
            pending.append(value.__self__)
        elif isinstance(value, functools.partial):
            pending += [value.func, value.args, value.keywords]
        elif inspect.isfunction(value):
            pending += [value.__defaults__, value.__kwdefaults__, inspect.getclosurevars(value).nonlocals]
    return False


class _Function:
    """One method, and the nodes that its nodes are a part of."""

    def __init__(self, function: Any) -> None:
        self.nodes = list(ast.walk(function))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        arguments = [*function.args.posonlyargs, *function.args.args]
        is_static = any(isinstance(node, ast.Name) and node.id == "staticmethod" for node in function.decorator_list)
        self.owner = "" if is_static else arguments[0].arg if arguments else None  # the module's name, if there is one

    def is_self(self, node: Any) -> bool:
        """Whether a node is the module: by the name of the first argument, or as super()."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id == "super"
        return isinstance(node, ast.Name) and node.id == self.owner

    def is_asked_for_its_place(self, node: Any) -> bool:
        """Whether only the type or the device of a first parameter is read: next(self.parameters()).device."""
        call: Any = self.parents.get(node)
        first: Any = self.parents.get(call)
        place = self.parents.get(first)
        return (isinstance(first, ast.Call) and isinstance(first.func, ast.Name) and first.func.id == "next"
                and isinstance(place, ast.Attribute) and place.attr in ("device", "dtype"))

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

    Both sets are empty if the code is not to be had, or reaches children or their tensors in other ways than by their names.
    """
    children = dict(module.named_children())
    if type(module) is torch.nn.Sequential:
        return Uses(called=set(children))
    registers = vars(torch.nn.Module())
    try:
        functions = _reached(_methods(type(module)))
        hidden = _lead_to_modules([value for name, value in vars(module).items() if name not in registers])
    except (OSError, TypeError, SyntaxError, ValueError):
        return Uses()
    if hidden or "forward" in vars(module) or not functions or any(function.owner is None for function in functions):
        return Uses()
    uses = Uses(set(children), {name for name, child in children.items() if isinstance(child, _LISTS)})
    read = set()
    for function in functions:
        for node in function.nodes:
            parent = function.parents.get(node)
            if function.is_self(node) and not isinstance(parent, ast.Attribute):
                return Uses()
            if not isinstance(node, ast.Attribute) or not function.is_self(node.value):
                continue
            if node.attr in _CHILDREN or node.attr.startswith("__") or (
                    node.attr in _TENSORS and not function.is_asked_for_its_place(node)):
                return Uses()
            read.add(node.attr)
            if not function.is_called(node):
                uses.called.discard(node.attr)
            if not function.are_elements_called(node):
                uses.elements_called.discard(node.attr)
    return Uses(uses.called & read, uses.elements_called & read)
