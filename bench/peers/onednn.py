"""oneDNN by itself, through its C interface: f32, weights packed for it, x and y in the layout that it asks for, or channels
last. The package is the build with SYCL, whose threads are TBB's; a run waits for its queue.
"""
import ctypes
import os
import pathlib
import sys

import numpy as np

from . import Runner, Unsupported

PACKAGE = "onednn"

# Enumerators of dnnl_types.h and dnnl_common_types.h, whose values no release of version 3 may change.
F32, CPU, IN_ORDER, INFERENCE, DIRECT, X, Y, WEIGHTS, BIAS = 3, 1, 1, 96, 0xA, 1, 17, 33, 41
IMPLEMENTATION, X_LAYOUT, WEIGHTS_LAYOUT, Y_LAYOUT = 8, 129, 131, 133
UNIMPLEMENTED = 3
ALLOCATE = ctypes.c_void_p(-1)
FOLDER = pathlib.Path(sys.prefix, "lib")


class Argument(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("memory", ctypes.c_void_p))


class Library:
    """Its functions, on one engine and one stream. What is made lives as long as the process, a few hundred layers at most."""

    def __init__(self, threads):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        os.environ.update(OCL_ICD_FILENAMES=str(FOLDER / "libintelocl.so"), DPCPP_CPU_NUM_CUS=str(threads))
        for name in ("libtbb.so.12", "libintlc.so.5", "libimf.so", "libsvml.so", "libsycl.so.9"):
            ctypes.CDLL(str(FOLDER / name), ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(FOLDER / "libdnnl.so.3"))
        self.library.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        self.engine = self.make("engine_create", CPU, ctypes.c_size_t(0))
        self.stream = self.make("stream_create", self.engine, IN_ORDER)

    def call(self, name, *arguments):
        status = getattr(self.library, "dnnl_" + name)(*arguments)
        if status == UNIMPLEMENTED:
            raise Unsupported("not implemented")
        if status:
            raise RuntimeError(f"{name} gives {status}")

    def make(self, name, *arguments):
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def layout(self, shape, order=None):
        """That of an array whose axes lie in this order, the last one innermost; without, the library's choice."""
        dims = (ctypes.c_int64 * 12)(*shape)
        if order is None:
            return self.make("memory_desc_create_with_tag", len(shape), dims, F32, 1)  # dnnl_format_tag_any
        strides, step = [0] * len(shape), 1
        for axis in reversed(order):
            strides[axis], step = step, step * shape[axis]
        return self.make("memory_desc_create_with_strides", len(shape), dims, F32, (ctypes.c_int64 * 12)(*strides))

    def memory(self, layout):
        return self.make("memory_create", layout, self.engine, ALLOCATE)

    def copy(self, memory, array, in_=False):
        mapped = ctypes.c_void_p()
        self.call("memory_map_data", memory, ctypes.byref(mapped))
        ends = (mapped, array.ctypes.data) if in_ else (array.ctypes.data, mapped)
        ctypes.memmove(*ends, array.nbytes)
        self.call("memory_unmap_data", memory, mapped)

    def runner(self, description, **memories):
        """A call of a primitive that waits for its end."""
        primitive = self.make("primitive_create", description)
        arguments = (Argument * len(memories))(*(Argument(globals()[kind], memory) for kind, memory in memories.items()))
        execute, wait = self.library.dnnl_primitive_execute, self.library.dnnl_stream_wait
        stream, count = self.stream, len(memories)

        def run():
            if execute(primitive, stream, count, arguments) or wait(stream):
                raise RuntimeError("a run failed")
        return run

    def reorder(self, x, x_layout, y, y_layout):
        self.runner(self.make("reorder_primitive_desc_create", x_layout, self.engine, y_layout, self.engine, None), X=x, Y=y)()

    def filled(self, array, layout):
        plain = self.layout(array.shape, range(array.ndim))
        source, target = self.memory(plain), self.memory(layout)
        self.copy(source, np.ascontiguousarray(array), in_=True)
        self.reorder(source, plain, target, layout)
        return target


LIBRARY = []


def _setting(channels_last):
    def setting(layer, threads):
        if not LIBRARY:
            LIBRARY.append(Library(threads))
        library, axes = LIBRARY[0], layer.axes
        # Output channels are the first axis of weights, in each group.
        w = layer.w.reshape(layer.group, -1, *layer.w.shape[1:]).swapaxes(1, 2)
        w = w if layer.group > 1 else w[0]
        shape = (layer.x.shape[0], len(layer.b), *layer.out)
        order = [0, *range(2, axes + 2), 1] if channels_last else None
        bias = library.layout(layer.b.shape, [0])
        numbers = [(ctypes.c_int64 * 12)(*values) for values in (
            layer.strides, [dilation - 1 for dilation in layer.dilations], layer.pads,
            [pad - more for pad, more in zip(layer.pads, layer.output_padding)])]
        description = library.make("deconvolution_forward_primitive_desc_create", library.engine, INFERENCE, DIRECT,
                                   library.layout(layer.x.shape, order), library.layout(w.shape), bias,
                                   library.layout(shape, order), *numbers, None)
        layouts = [ctypes.c_void_p(library.library.dnnl_primitive_desc_query_md(description, which, 0))
                   for which in (X_LAYOUT, WEIGHTS_LAYOUT, Y_LAYOUT)]
        x, weights, b = (library.filled(array, layout) for array, layout in zip((layer.x, w, layer.b), (*layouts[:2], bias)))
        y = library.memory(layouts[2])

        def output():
            plain = library.layout(shape, range(axes + 2))
            memory, array = library.memory(plain), np.empty(shape, np.float32)
            library.reorder(y, layouts[2], memory, plain)
            library.copy(memory, array)
            return array

        name = ctypes.c_char_p()
        library.call("primitive_desc_query", description, IMPLEMENTATION, 0, ctypes.byref(name))
        return Runner(library.runner(description, X=x, WEIGHTS=weights, BIAS=b, Y=y), output, note=name.value.decode())
    return setting


SETTINGS = {"onednn": _setting(False), "onednn nhwc": _setting(True)}
