"""PyTorch: its functions as they are called by default and channels last, with oneDNN or with its own GEMM, and oneDNN with
the weights packed beforehand, which is what torch.compile makes of a frozen model. In f32 or bf16.
"""
import torch

from . import Runner, Unsupported

PACKAGE = "torch"

FUNCTIONS = (torch.nn.functional.conv_transpose1d, torch.nn.functional.conv_transpose2d,
             torch.nn.functional.conv_transpose3d)
CHANNELS_LAST = {2: torch.channels_last, 3: torch.channels_last_3d}

torch.set_grad_enabled(False)


def _runner(call):
    last = [None]  # kept, so that the memory of one result is free for the one after the next

    def run():
        last[0] = call()

    return Runner(run, lambda: last[0].contiguous().float().numpy())


def _tensors(layer):
    dtype = torch.bfloat16 if layer.dtype == "bf16" else torch.float32
    return (torch.from_numpy(array).to(dtype) for array in (layer.x, layer.w, layer.b))


def _function(channels_last, onednn):
    def setting(layer, threads):
        torch.set_num_threads(threads)
        torch.backends.mkldnn.set_flags(onednn)
        x, w, b = _tensors(layer)
        if channels_last:
            if layer.axes == 1:
                raise Unsupported("no channels-last layout of one axis")
            x, w = (tensor.to(memory_format=CHANNELS_LAST[layer.axes]) for tensor in (x, w))
        function = FUNCTIONS[layer.axes - 1]
        return _runner(lambda: function(x, w, b, stride=layer.strides, padding=layer.pads, groups=layer.group,
                                        output_padding=layer.output_padding, dilation=layer.dilations))
    return setting


def packed(layer, threads):
    torch.set_num_threads(threads)
    layer = layer.as_two_axes()
    x, w, b = _tensors(layer)
    x = x.to(memory_format=CHANNELS_LAST[layer.axes])
    geometry = (layer.pads, layer.output_padding, layer.strides, layer.dilations, layer.group)
    weights = torch.ops.mkldnn._reorder_convolution_transpose_weight(w, *geometry, list(x.shape))
    compute = torch.ops.mkldnn._convolution_transpose_pointwise
    return _runner(lambda: compute(x, weights, b, *geometry, "none", [], ""))


SETTINGS = {"pytorch": _function(False, True), "pytorch nhwc": _function(True, True), "pytorch packed": packed,
            "pytorch gemm": _function(False, False)}
