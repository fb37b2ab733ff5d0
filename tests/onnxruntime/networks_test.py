"""The networks of bench/networks as quantize_static makes them: all transposed convolutions are computed in 8 bits, and each, given
the same input, within one unit of ONNX Runtime's own result. Images are smaller than there, channels and kernels are not.
"""
import logging
import os
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper
from support import TestCase, left_to_others, nodes_run, ours, plain, setUpModule  # noqa: F401

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "networks"))
from networks_benchmark import quantized

from networks import NETWORKS

SHAPES = {"dcgan": (1, 100, 1, 1), "unet": (1, 1, 32, 48), "fsrcnn": (1, 1, 36, 40), "hifigan": (1, 80, 6),
          "unet3d": (1, 1, 8, 16, 24), "simple_baseline": (1, 3, 64, 96), "istft_head": (1, 512, 20)}


def made(name):
    """The quantized network for x of SHAPES."""
    proto = NETWORKS[name]()
    for dim, extent in zip(proto.graph.input[0].type.tensor_type.shape.dim, SHAPES[name]):
        dim.dim_value = extent
    with tempfile.TemporaryDirectory() as folder:
        return quantized(proto, SHAPES[name], Path(folder))


def chains(proto):
    """The layers: each a model of its own, from an x of 8 bits to a y of 8 bits."""
    graph = proto.graph
    producers = {output: node for node in graph.node for output in node.output}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for conv in graph.node:
        if conv.op_type != "ConvTranspose":
            continue
        nodes = [producers[name] for name in conv.input] + [conv]
        assert all(node.op_type == "DequantizeLinear" for node in nodes[:-1]), f"{conv.name} has an input of floats"
        while nodes[-1].op_type != "QuantizeLinear":
            readers = [node for node in graph.node if nodes[-1].output[0] in node.input]
            assert len(readers) == 1, f"{nodes[-1].name} has several readers"
            nodes += readers
        x, y = nodes[0].input[0], nodes[-1].output[0]
        types = [numpy_helper.to_array(constants[node.input[2]]).dtype for node in (nodes[0], nodes[-1])]
        x_info, y_info = (helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None)
                          for name, dtype in zip((x, y), types))
        layer = helper.make_graph(nodes, conv.name, [x_info], [y_info],
                                  [constants[name] for node in nodes for name in node.input if name in constants])
        yield helper.make_model(layer, opset_imports=proto.opset_import, ir_version=proto.ir_version)


def with_outputs(proto, infos):
    more = type(proto)()
    more.CopyFrom(proto)
    more.graph.output.extend(infos)
    return more


def explained(proto):
    """The lines that the provider prints of the nodes that it takes, and of each layer."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            ours(proto, explain=True)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return file.read().decode().splitlines()


class Networks(TestCase):
    def setUp(self):
        super().setUp()
        logging.disable(logging.WARNING)  # quantize_static advises on each constant

    def check(self, name):
        proto = made(name)
        feeds = {"x": self.draw(SHAPES[name])}
        layers = list(chains(proto))
        count = sum(node.op_type == "ConvTranspose" for node in proto.graph.node)
        self.assertEqual(len(layers), count)
        self.assertGreater(count, 0)

        # No ConvTranspose runs elsewhere, or in floats: all are taken with DequantizeLinear and QuantizeLinear around them.
        ran = nodes_run(proto, feeds)[1]
        self.assertNotIn("ConvTranspose", left_to_others(ran))
        lines = explained(proto)
        taken = [line for line in lines if ": takes ConvTranspose" in line]
        self.assertEqual(len(taken), count)
        for line in taken:
            self.assertIn(" + QuantizeLinear ", line)
        for text in ("computed in floats", "y is f32", "leaves it to the next provider"):
            self.assertEqual([line for line in lines if text in line], [])

        # Each layer, with the x that it has in the network.
        inputs = [layer.graph.input[0] for layer in layers]
        values = plain(with_outputs(proto, inputs)).run([value.name for value in inputs], feeds)
        for layer, x in zip(layers, values):
            with self.subTest(layer=layer.graph.name):
                feed = {layer.graph.input[0].name: x}
                (y,), ran = nodes_run(layer, feed)
                self.assertEqual(left_to_others(ran), [])
                wanted = plain(layer).run(None, feed)[0]
                self.assertEqual((y.dtype, y.shape), (wanted.dtype, wanted.shape))
                self.assertLessEqual(np.abs(y.astype(int) - wanted).max(), 1)
                self.assertGreater(wanted.max(), wanted.min())  # it computes something

    def test_dcgan(self):
        self.check("dcgan")

    def test_unet(self):
        self.check("unet")

    def test_fsrcnn(self):
        self.check("fsrcnn")

    def test_hifigan(self):
        self.check("hifigan")

    def test_unet3d(self):
        self.check("unet3d")

    def test_simple_baseline(self):
        self.check("simple_baseline")

    def test_istft_head(self):
        self.check("istft_head")

    def test_none_is_left_out(self):
        self.assertEqual(set(SHAPES), set(NETWORKS))


if __name__ == "__main__":
    unittest.main()
