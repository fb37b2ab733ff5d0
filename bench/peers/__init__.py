"""Other libraries that compute transposed convolutions, each in a module of its own, run by worker.py.

A module has the name of its Python package in PACKAGE, and in SETTINGS the ways to run a layer with it: functions of a
Layer and a number of threads that give a Runner, or raise Unsupported.
"""
import dataclasses
import typing

import numpy as np


class Unsupported(Exception):
    """This setting cannot run the layer at all; the text says why."""


@dataclasses.dataclass
class Layer:
    """With one entry per axis. w is (C, M/group, k...)."""
    model: bytes  # the same as an ONNX model
    x: np.ndarray
    w: np.ndarray
    b: np.ndarray
    out: tuple
    strides: list
    pads: list
    output_padding: list
    dilations: list
    group: int
    dtype: str = "f32"  # of the tensors, though bf16 is given as f32

    @property
    def axes(self):
        return len(self.out)

    def as_two_axes(self):
        """A layer of one axis as one of two with height 1, a reshape that costs nothing; any other as it is."""
        if self.axes != 1:
            return self
        tall = {name: getattr(self, name)[:, :, None] for name in ("x", "w")}
        return dataclasses.replace(self, **tall, model=b"", out=(1, *self.out), strides=[1, *self.strides],
                                   pads=[0, *self.pads], output_padding=[0, *self.output_padding],
                                   dilations=[1, *self.dilations])


@dataclasses.dataclass
class Runner:
    run: typing.Callable[[], object]         # what is timed
    output: typing.Callable[[], np.ndarray]  # y of the last run; any shape with the elements in the order of (N, M, out...)
    begin: list = None                       # cut off before the first output, if not as the layer says
    note: str = ""                           # what kernel ran, where the library tells
    times: typing.Callable[[float], list] = None  # of runs for so many seconds, in seconds, by a clock of its own


def channels_last(array):
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def channels_first(array):
    return np.moveaxis(array, -1, 1)
