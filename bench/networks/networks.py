"""Networks with transposed convolutions, as published, with seeded weights. NETWORKS maps names to functions that make models.

Weights are scaled so that values stay of order 1 through all layers. Batch normalization stands behind convolutions where the
network has it, and is folded by whoever folds it.
"""
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8


class Builder:
    """Adds nodes one behind the other; each method takes the name of a value and returns that of the result."""

    def __init__(self, name, shape, seed=20261127):
        self.name, self.random = name, np.random.default_rng(seed)
        self.nodes, self.constants, self.channels = [], [], {"x": shape[1]}
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op, inputs, channels=None, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"{op}_{len(self.nodes)}", **attributes))
        self.channels[name] = channels or self.channels[inputs[0]]
        return name

    def weights(self, shape, terms):
        return self.constant((self.random.standard_normal(shape) * math.sqrt(2 / terms)).astype(np.float32))

    def conv(self, x, m, kernel, stride=1, pad=None, dilation=1, axes=2, bias=True):
        c, taps = self.channels[x], kernel**axes
        pad = dilation * (kernel - 1) // 2 if pad is None else pad
        b = [self.constant((self.random.standard_normal(m) / 10).astype(np.float32))] if bias else []
        return self.node("Conv", [x, self.weights((m, c) + (kernel,) * axes, c * taps), *b], m, strides=[stride] * axes,
                         pads=[pad] * 2 * axes, dilations=[dilation] * axes)

    def up(self, x, m, kernel, stride, pad=0, extra=0, axes=2, bias=True):
        """A transposed convolution."""
        c, taps = self.channels[x], max(1, kernel / stride)**axes
        b = [self.constant((self.random.standard_normal(m) / 10).astype(np.float32))] if bias else []
        return self.node("ConvTranspose", [x, self.weights((c, m) + (kernel,) * axes, c * taps), *b], m, strides=[stride] * axes,
                         pads=[pad] * 2 * axes, output_padding=[extra] * axes)

    def norm(self, x):
        m = self.channels[x]
        values = [self.random.uniform(0.8, 1.2, m), self.random.standard_normal(m) / 10, self.random.standard_normal(m) / 10,
                  self.random.uniform(0.8, 1.2, m)]
        return self.node("BatchNormalization", [x, *(self.constant(value.astype(np.float32)) for value in values)])

    def relu(self, x):
        return self.node("Relu", [x])

    def model(self, y):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)],
                                  self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def dcgan():
    """The generator of Radford, Metz, Chintala 2015, as PyTorch's example has it: 64 x 64, 64 features."""
    b = Builder("dcgan", [1, 100, 1, 1])
    x = b.relu(b.norm(b.up("x", 512, 4, 1, bias=False)))
    for m in (256, 128, 64):
        x = b.relu(b.norm(b.up(x, m, 4, 2, 1, bias=False)))
    return b.model(b.node("Tanh", [b.up(x, 3, 4, 2, 1, bias=False)]))


def unet():
    """Ronneberger, Fischer, Brox 2015, padded, on 256 x 256."""
    return u_shape("unet", [1, 1, 256, 256], (64, 128, 256, 512, 1024), 2)


def unet3d():
    """Cicek and others 2016, padded, on 16 x 64 x 64, which is what fits a quick run."""
    return u_shape("unet3d", [1, 1, 16, 64, 64], (32, 64, 128, 256), 3)


def u_shape(name, shape, widths, axes):
    b = Builder(name, shape)

    def twice(x, m):
        for _ in range(2):
            x = b.relu(b.norm(b.conv(x, m, 3, axes=axes)))
        return x

    x, skips = twice("x", widths[0]), []
    for m in widths[1:]:
        skips.append(x)
        x = twice(b.node("MaxPool", [x], kernel_shape=[2] * axes, strides=[2] * axes), m)
    for m, skip in zip(widths[-2::-1], skips[::-1]):
        x = b.up(x, m, 2, 2, axes=axes)
        x = twice(b.node("Concat", [skip, x], 2 * m, axis=1), m)
    return b.model(b.conv(x, 2, 1, axes=axes))


def fsrcnn():
    """Dong, Loy, Tang 2016: FSRCNN(56, 12, 4), twice the size of 180 x 320."""
    b = Builder("fsrcnn", [1, 1, 180, 320])

    def prelu(x):
        slopes = b.constant(b.random.uniform(0.1, 0.4, (b.channels[x], 1, 1)).astype(np.float32))
        return b.node("PRelu", [x, slopes])

    x = prelu(b.conv(prelu(b.conv("x", 56, 5)), 12, 1))
    for _ in range(4):
        x = prelu(b.conv(x, 12, 3))
    return b.model(b.up(prelu(b.conv(x, 56, 1)), 1, 9, 2, 4, 1))


def hifigan():
    """The generator V1 of Kong, Kim, Bae 2020, on 32 frames of 80 mel bands."""
    b = Builder("hifigan", [1, 80, 32])

    def leaky(x, alpha=0.1):
        return b.node("LeakyRelu", [x], alpha=alpha)

    x, m = b.conv("x", 512, 7, axes=1), 512
    for stride, kernel in ((8, 16), (8, 16), (2, 4), (2, 4)):
        m //= 2
        x = b.up(leaky(x), m, kernel, stride, (kernel - stride) // 2, axes=1)
        branches = []
        for size in (3, 7, 11):
            r = x
            for dilation in (1, 3, 5):
                t = b.conv(leaky(r), m, size, dilation=dilation, axes=1)
                r = b.node("Add", [b.conv(leaky(t), m, size, axes=1), r])
            branches.append(r)
        total = b.node("Add", [b.node("Add", branches[:2]), branches[2]])
        x = b.node("Div", [total, b.constant(np.float32(9))])
    return b.model(b.node("Tanh", [b.conv(leaky(x, 0.01), 1, 7, axes=1)]))


def simple_baseline():
    """Xiao, Wu, Wei 2018: ResNet-50 and three transposed convolutions, 256 x 192, 17 joints."""
    b = Builder("simple_baseline", [1, 3, 256, 192])
    x = b.relu(b.norm(b.conv("x", 64, 7, 2, bias=False)))
    x = b.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            s = stride if block == 0 else 1
            short = b.norm(b.conv(x, 4 * width, 1, s, bias=False)) if block == 0 else x
            t = b.relu(b.norm(b.conv(x, width, 1, bias=False)))
            t = b.relu(b.norm(b.conv(t, width, 3, s, bias=False)))
            x = b.relu(b.node("Add", [b.norm(b.conv(t, 4 * width, 1, bias=False)), short]))
    for _ in range(3):
        x = b.relu(b.norm(b.up(x, 256, 4, 2, 1, bias=False)))
    return b.model(b.conv(x, 17, 1))


def istft_head():
    """The head of Vocos (Siuzdak 2023): magnitude and phase of 513 bins, and the inverse transform of 100 frames of 1024 by 256."""
    bins, size, hop = 513, 1024, 256
    b = Builder("istft_head", [1, 512, 100])
    halves = [b.conv("x", bins, 1, axes=1) for _ in range(2)]
    magnitude = b.node("Clip", [b.node("Exp", [halves[0]]), "", b.constant(np.float32(100))])
    parts = [b.node("Mul", [magnitude, b.node(op, [halves[1]])]) for op in ("Cos", "Sin")]
    angles = 2 * np.pi * np.outer(np.arange(bins), np.arange(size)) / size
    window = np.hanning(size) * np.where(np.arange(bins) % (bins - 1) == 0, 1, 2)[:, None] / size
    basis = np.concatenate([np.cos(angles) * window, -np.sin(angles) * window])[:, None].astype(np.float32)
    spectrum = b.node("Concat", parts, 2 * bins, axis=1)
    return b.model(b.node("ConvTranspose", [spectrum, b.constant(basis)], 1, strides=[hop], pads=[(size - hop) // 2] * 2))


NETWORKS = {function.__name__: function for function in (dcgan, unet, fsrcnn, hifigan, unet3d, simple_baseline, istft_head)}
