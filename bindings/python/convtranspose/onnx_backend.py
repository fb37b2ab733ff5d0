"""A backend of ONNX (onnx.backend.base.Backend) for models whose nodes are all ConvTranspose. It needs the package onnx.

    model = convtranspose.onnx_backend.prepare(onnx.load("upsample.onnx"))
    (y,) = model.run([x])

For models with other nodes there is convtranspose.onnxruntime. Source: https://onnx.ai/onnx/api/backend.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._functions import conv_transpose

_OPERATOR = "ConvTranspose"
_BF16_OPSET = 22


def _opset_of(model: onnx.ModelProto) -> int:
    """Returns the model's version of ONNX's operators: 1 if it imports none, as those of the first two versions of the format."""
    return next((int(opset.version) for opset in model.opset_import if opset.domain in ("", "ai.onnx")), 1)


def _value(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _dense(sparse: onnx.SparseTensorProto) -> Any:
    """Makes an array of a sparse tensor, whose indices are linear or have a column for each axis."""
    values, indices = onnx.numpy_helper.to_array(sparse.values), onnx.numpy_helper.to_array(sparse.indices)
    array = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        array.reshape(-1)[indices] = values
    else:
        array[tuple(indices.T)] = values
    return array


def _unsupported(node: onnx.NodeProto) -> str | None:
    """Returns why a node is not for this backend, or None."""
    if node.op_type == _OPERATOR and node.domain in ("", "ai.onnx"):
        return None
    return f"node '{node.name}' is a {node.domain + '.' if node.domain else ''}{node.op_type}; this backend runs {_OPERATOR} alone"


def _require_types(arguments: Mapping[str, Any], opset: int) -> None:
    """Raises ValueError unless arrays have one type, which the operator takes. conv_transpose() takes more."""
    types = {name: array.dtype.name for name, array in arguments.items()}
    if len(set(types.values())) > 1:
        given = ", ".join(f"'{name}' holds {dtype}" for name, dtype in types.items())
        raise ValueError(f"{given}; the inputs of a {_OPERATOR} must have one type")
    if "bfloat16" in types.values() and opset < _BF16_OPSET:
        raise ValueError(f"{_OPERATOR} takes bfloat16 from opset {_BF16_OPSET} on, not in opset {opset}")


def _computed(node: onnx.NodeProto, values: Mapping[str, Any], opset: int) -> Any:
    """Computes a node whose inputs are among the values."""
    attributes = {attribute.name: _value(attribute) for attribute in node.attribute}
    arguments = [np.asarray(values[name]) if name else None for name in node.input]
    _require_types({name: array for name, array in zip(node.input, arguments) if name}, opset)
    return conv_transpose(*arguments, opset=opset, **attributes)


def _outputs(names: list[str], values: list[Any]) -> tuple[Any, ...]:
    """Returns the values as a tuple that may be asked by name too, as ONNX's backends do."""
    outputs: tuple[Any, ...] = namedtupledict("Outputs", names)(*values)
    return outputs


class ConvTransposeRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._graph = model.graph
        self._opset = _opset_of(model)
        self._constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self._constants |= {sparse.values.name: _dense(sparse) for sparse in model.graph.sparse_initializer}
        self._inputs = [value.name for value in model.graph.input if value.name not in self._constants]

    def run(self, inputs: Sequence[Any] | Mapping[str, Any], **_: Any) -> tuple[Any, ...]:
        """Computes the model's outputs.

        Args:
            inputs: Arrays, by name or in the order of the graph's inputs that are no initializers.

        Raises:
            ValueError: An input is missing, or there is none for it, or it does not fit its node; the message names it.
        """
        if not isinstance(inputs, Mapping) and len(inputs) > len(self._inputs):
            raise ValueError(f"there are {len(inputs)} inputs; the model takes {len(self._inputs)}: {', '.join(self._inputs)}")
        named = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(self._inputs, inputs))
        if unknown := [name for name in named if all(name != value.name for value in self._graph.input)]:
            raise ValueError(f"nothing takes the inputs {', '.join(unknown)}; the model takes {', '.join(self._inputs)}")
        if missing := [name for name in self._inputs if name not in named]:
            raise ValueError(f"the inputs {', '.join(missing)} are missing")
        values = {**self._constants, **named}
        for node in self._graph.node:
            values[node.output[0]] = _computed(node, values, self._opset)
        outputs = [value.name for value in self._graph.output]
        return _outputs(outputs, [values[name] for name in outputs])


class ConvTransposeBackend(Backend):
    """The backend; the functions of this module are its methods."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> bool:
        """Returns whether the model's nodes are all ConvTranspose."""
        return cls.supports_device(device) and not any(map(_unsupported, model.graph.node))

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> ConvTransposeRep:
        """Checks a model and makes it ready to run.

        Raises:
            NotImplementedError: A node is not a ConvTranspose, or the device is not "CPU".
            onnx.checker.ValidationError: The model breaks a rule of ONNX.
        """
        cls._require_supported(model.graph.node, device)
        onnx.checker.check_model(model)
        return ConvTransposeRep(model)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None,
                 **options: Any) -> tuple[Any, ...]:
        """Computes one node.

        Args:
            node: A ConvTranspose.
            inputs: Arrays for the node's inputs that are not left out, in their order.
            device: "CPU".
            outputs_info: Not looked at.
            options: opset_version, the opset of the model; by default ONNX's newest.

        Raises:
            NotImplementedError: The node is not a ConvTranspose, or the device is not "CPU".
            ValueError: An input is missing, or does not fit; the message names it.
            onnx.checker.ValidationError: The node breaks a rule of ONNX.
        """
        opset = options.get("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in node.input if name]
        cls._require_supported([node], device)
        super().run_node(node, inputs, device, outputs_info, opset_version=opset)  # which checks the node
        if len(inputs) != len(names):
            raise ValueError(f"there are {len(inputs)} inputs; the node takes {len(names)}: {', '.join(names)}")
        return _outputs(list(node.output), [_computed(node, dict(zip(names, inputs)), opset)])

    @classmethod
    def _require_supported(cls, nodes: Iterable[onnx.NodeProto], device: str) -> None:
        if not cls.supports_device(device):
            raise NotImplementedError(f"there is no device '{device}'; the backend runs on 'CPU'")
        for node in nodes:
            if why := _unsupported(node):
                raise NotImplementedError(why)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Returns whether the backend runs on a device: on "CPU" it does."""
        return device.partition(":")[0] == "CPU"


is_compatible = ConvTransposeBackend.is_compatible
prepare = ConvTransposeBackend.prepare
run_model = ConvTransposeBackend.run_model
run_node = ConvTransposeBackend.run_node
supports_device = ConvTransposeBackend.supports_device
