"""cuDNN, through PyTorch on its first GPU: f32 with TF32 off, channels first and channels last; and beside them what tensor cores
make of it, TF32 and f16, whose results are less exact. cuDNN chooses its algorithm by measurement. Times are those of CUDA's
events, of batches of runs with all tensors on the GPU.
"""
import torch

from . import Runner, Unsupported
from .pytorch import CHANNELS_LAST, FUNCTIONS

PACKAGE = "torch"
FEWEST_BATCHES = 5
BATCH = 1e-3  # seconds of work that the GPU is given at a time: it is slow to start and to stop


def _time_runs(run, seconds):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def time_batch(runs):
        begin.record()
        for _ in range(runs):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    runs = 1
    while time_batch(runs) < BATCH:
        runs *= 2
    times = []
    while sum(times) < seconds or len(times) < FEWEST_BATCHES:
        times.append(time_batch(runs))
    return [time / runs for time in times]


def _setting(channels_last, tf32, dtype):
    def setting(layer, _):
        if not torch.cuda.is_available():
            raise Unsupported("PyTorch finds no GPU")
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cuda.matmul.allow_tf32 = tf32
        x, w, b = (torch.from_numpy(array).to("cuda", dtype) for array in (layer.x, layer.w, layer.b))
        if channels_last:
            if layer.axes == 1:
                raise Unsupported("no channels-last layout of one axis")
            x, w = (tensor.to(memory_format=CHANNELS_LAST[layer.axes]) for tensor in (x, w))
        function = FUNCTIONS[layer.axes - 1]
        last = [None]  # kept, so that the memory of one result is free for the one after the next

        def run():
            last[0] = function(x, w, b, stride=layer.strides, padding=layer.pads, groups=layer.group,
                               output_padding=layer.output_padding, dilation=layer.dilations)

        return Runner(run, lambda: last[0].contiguous().float().cpu().numpy(), times=lambda seconds: _time_runs(run, seconds))
    return setting


SETTINGS = {"cudnn": _setting(False, False, torch.float32), "cudnn nhwc": _setting(True, False, torch.float32),
            "cudnn tf32": _setting(False, True, torch.float32), "cudnn tf32 nhwc": _setting(True, True, torch.float32),
            "cudnn f16": _setting(False, False, torch.float16), "cudnn f16 nhwc": _setting(True, False, torch.float16)}
