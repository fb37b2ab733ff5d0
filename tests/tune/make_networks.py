"""Two small networks with several transposed convolutions each, as ONNX models with shapes: a U-Net of four levels, and a generator
of waveforms from a spectrogram, like HiFi-GAN's. Usage: make_networks.py FOLDER"""
import itertools
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference


class Network:
    def __init__(self, name, x_shape):
        self.name, self.nodes, self.initializers = name, [], []
        self.x = helper.make_tensor_value_info("x", TensorProto.FLOAT, x_shape)
        self.random = np.random.default_rng(1)

    def add(self, op, inputs, **attributes):
        y = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [y], name=y, **attributes))
        return y

    def convolution(self, op, x, channels_in, channels_out, kernel, **attributes):
        shape = (channels_in, channels_out) if op == "ConvTranspose" else (channels_out, channels_in)
        names = [f"{kind}{len(self.nodes)}" for kind in "wb"]
        scale = 1 / np.sqrt(channels_in * np.prod(kernel))
        for name, s in zip(names, [(*shape, *kernel), (channels_out,)]):
            values = self.random.uniform(-scale, scale, s).astype(np.float32)
            self.initializers.append(numpy_helper.from_array(values, name))
        return self.add(op, [x, *names], kernel_shape=list(kernel), **attributes)

    def save(self, folder, y):
        value = helper.make_tensor_value_info(y, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, self.name, [self.x], [value], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        model = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        onnx.checker.check_model(model)
        onnx.save(model, Path(folder) / f"{self.name}.onnx")


def unet(folder):
    channels = [8, 16, 32, 64]
    n = Network("small_unet", [1, 3, 64, 64])
    same = {"pads": [1, 1, 1, 1]}
    x, skips = n.add("Relu", [n.convolution("Conv", "x", 3, channels[0], (3, 3), **same)]), []
    for c_in, c_out in itertools.pairwise(channels):
        skips.append(x)
        x = n.add("Relu", [n.convolution("Conv", x, c_in, c_out, (3, 3), strides=[2, 2], **same)])
    for c_out, c_in in reversed(list(itertools.pairwise(channels))):
        up = n.convolution("ConvTranspose", x, c_in, c_out, (2, 2), strides=[2, 2])
        x = n.add("Relu", [n.convolution("Conv", n.add("Concat", [up, skips.pop()], axis=1), 2 * c_out, c_out, (3, 3), **same)])
    n.save(folder, n.convolution("ConvTranspose", x, channels[0], 1, (4, 4), strides=[2, 2], pads=[1, 1, 1, 1]))


def generator(folder):
    n = Network("small_generator", [1, 20, 16])
    channels = 64
    x = n.convolution("Conv", "x", 20, channels, (7,), pads=[3, 3])
    for kernel, stride in [(16, 8), (16, 8), (4, 2)]:
        pad = (kernel - stride) // 2
        x = n.convolution("ConvTranspose", n.add("LeakyRelu", [x], alpha=0.1), channels, channels // 2, (kernel,),
                          strides=[stride], pads=[pad, pad])
        channels //= 2
    n.save(folder, n.add("Tanh", [n.convolution("Conv", x, channels, 1, (7,), pads=[3, 3])]))


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    unet(sys.argv[1])
    generator(sys.argv[1])
