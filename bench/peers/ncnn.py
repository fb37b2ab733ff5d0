"""ncnn: f32, its packed layout within and outside, as it is between the layers of a network, memory kept by pools. It has no
batch: each image is a run of its network. Layers of one axis are of two, for which it has better kernels.
"""
import ncnn
import numpy as np

from . import Runner

PACKAGE = "ncnn"

WIDTHS = (16, 8, 4)  # channels in a vector, the most first
# Keys of a layer's parameters by axis, the last axis first.
KERNEL, DILATION, STRIDE = (1, 11, 21), (2, 12, 22), (3, 13, 23)
BEGIN, END, OUTPUT_PADDING = (4, 14, 24), (15, 16, 17), (18, 19, 20)
POOLS = ncnn.PoolAllocator(), ncnn.PoolAllocator()  # of the process, since they must outlive all that was allocated from them


def _network(layer, threads):
    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_vulkan_compute = False
    net.opt.use_packing_layout = True
    for kind in ("fp16", "bf16"):
        for what in ("packed", "storage", "arithmetic"):
            if hasattr(net.opt, f"use_{kind}_{what}"):
                setattr(net.opt, f"use_{kind}_{what}", False)
    net.opt.blob_allocator, net.opt.workspace_allocator = POOLS
    parameters = {0: len(layer.b), 5: 1, 6: layer.w.size, **({7: layer.group} if layer.group > 1 else {})}
    for keys, values in ((KERNEL, layer.w.shape[2:]), (DILATION, layer.dilations), (STRIDE, layer.strides), (BEGIN, layer.pads),
                         (END, layer.pads), (OUTPUT_PADDING, layer.output_padding)):
        parameters.update(zip(keys, reversed(values)))
    kind = "Deconvolution" + ("DepthWise" if layer.group > 1 else "") + ("3D" if layer.axes == 3 else "")
    text = " ".join(f"{key}={value}" for key, value in sorted(parameters.items()))
    net.load_param_mem(f"7767517\n2 2\nInput in 0 1 x\n{kind} layer 1 1 x y {text}\n")
    # In each group output channels come first. Before the weights is their type: 0 is f32.
    groups = layer.w.reshape(layer.group, -1, *layer.w.shape[1:]).swapaxes(1, 2)
    weights = np.concatenate([np.zeros(1, np.float32), groups.ravel(), layer.b]).tobytes()
    net.load_model_mem(weights)
    return net, kind, weights


def packed(layer, threads):
    layer = layer.as_two_axes()
    net, kind, kept = _network(layer, threads)

    def compute(x):
        with net.create_extractor() as extractor:
            extractor.input("x", x)
            return extractor.extract("y", 1)[1]  # 1: as it is packed

    def pack(image):
        width = next((width for width in WIDTHS if len(image) % width == 0), 1)
        mat = ncnn.Mat()
        ncnn.convert_packing(ncnn.Mat(np.ascontiguousarray(image)).clone(), mat, width, net.opt)
        return mat

    def unpack(y):
        mat = ncnn.Mat()
        ncnn.convert_packing(y, mat, 1, net.opt)
        return np.array(mat)

    xs = [pack(image) for image in layer.x]
    last = [None]

    def run():
        last[0] = [compute(x) for x in xs]

    runner = Runner(run, lambda: np.stack([unpack(y) for y in last[0]]), note=f"{kind}, {xs[0].elempack} channels in a vector")
    runner.kept = net, kept
    return runner


SETTINGS = {"ncnn": packed}
