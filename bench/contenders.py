"""Who takes part: `convtranspose`, and each setting of each peer."""
import importlib.metadata
import json
import os
import pathlib
import statistics
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper

from layers import output_extents, per_axis, tensors

HERE = pathlib.Path(__file__).resolve().parent

# Module in peers/: the package of the package index, and its settings. Said here too because only the worker imports a peer:
# their thread pools get on badly in one process.
PEERS = {
    "ort": ("onnxruntime", ["ort"]),
    "pytorch": ("torch", ["pytorch", "pytorch nhwc", "pytorch packed", "pytorch gemm"]),
    "openvino": ("openvino", ["openvino", "openvino nhwc"]),
    "litert": ("ai-edge-litert", ["litert"]),
    "onednn": ("onednn", ["onednn", "onednn nhwc"]),
    "mnn": ("MNN", ["mnn"]),
    "ncnn": ("ncnn", ["ncnn"]),
}
# The settings of those that compute in bf16.
BF16_PEERS = {"pytorch": ["pytorch", "pytorch nhwc", "pytorch packed"]}
# Those on a GPU, and which of their settings compute with fewer bits than f32 has: how far their products may be off.
DEVICE_PEERS = {
    "cudnn": ("torch", ["cudnn", "cudnn nhwc", "cudnn tf32", "cudnn tf32 nhwc", "cudnn f16", "cudnn f16 nhwc"]),
}
F32_UNIT = 2.0 ** -24
UNITS = {"cudnn tf32": 2.0 ** -11, "cudnn tf32 nhwc": 2.0 ** -11, "cudnn f16": 2.0 ** -11, "cudnn f16 nhwc": 2.0 ** -11}


# These take x and give y channels last, or in a layout of their own, of blocks of channels as a rule; the others channels first.
# LiteRT's model is channels last as a whole.
CHANNELS_LAST = {"pytorch nhwc", "pytorch packed", "openvino nhwc", "litert", "onednn", "onednn nhwc", "mnn", "ncnn"}

# Names of our ISAs in oneDNN, ATen and MKL: the most that a capped peer may use. No other peer has such a switch.
CAPS = {"x86_64": ("SSE41", "default", "SSE4_2"), "avx2": ("AVX2", "avx2", "AVX2"), "avx_vnni": ("AVX2_VNNI", "avx2", "AVX2"),
        "avx512": ("AVX512_CORE", "avx512", "AVX512"), "avx512_vnni": ("AVX512_CORE_VNNI", "avx512", "AVX512"),
        "amx": ("AVX512_CORE_AMX", "avx512", "AVX512")}
CAPPED = {"pytorch", "openvino", "onednn"}


def cap_of(isa):
    """The environment that caps the peers of CAPPED."""
    onednn, aten, mkl = CAPS[isa]
    return {"ONEDNN_MAX_CPU_ISA": onednn, "DNNL_MAX_CPU_ISA": onednn, "ATEN_CPU_CAPABILITY": aten, "MKL_ENABLE_INSTRUCTIONS": mkl}


def looseness(setting):
    return UNITS.get(setting, F32_UNIT) / F32_UNIT


class Refused(Exception):
    """Not able to run a layer."""


class Failed(Exception):
    """Ended with an error."""


def why_missing(peer):
    """None, or why it cannot take part; scripts/bench.sh leaves what pip said of one that it could not install."""
    package = {**PEERS, **DEVICE_PEERS}[peer][0]
    try:
        importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        said = pathlib.Path(sys.prefix, "not-installed", peer)
        return f"{package} is not installed" + (f": {said.read_text().strip()}" if said.exists() else "")
    return None


def version(peer):
    return importlib.metadata.version({**PEERS, **DEVICE_PEERS}[peer][0])


def write_layer(layer, folder, dtype="f32"):
    """The files that a contender prepares from; gives x, w and b. NumPy's files have no bf16: there they are f32."""
    folder.mkdir(parents=True, exist_ok=True)
    model, x, w, b = tensors(layer, dtype)
    onnx.save(model, folder / "model.onnx")
    onnx.save_tensor(numpy_helper.from_array(x, "x"), folder / "x.pb")
    x, w, b = (array.astype(np.float32) if dtype == "bf16" else array for array in (x, w, b))
    for name, array in (("x", x), ("w", w), ("b", b)):
        np.save(folder / f"{name}.npy", array)
    geometry = {"out": output_extents(layer), "strides": per_axis(layer, "s"), "pads": per_axis(layer, "p"),
                "output_padding": per_axis(layer, "op"), "dilations": per_axis(layer, "d"), "group": layer["g"],
                "dtype": dtype}
    (folder / "geometry.json").write_text(json.dumps(geometry))
    return x, w, b


# Kinds of plans of ours, besides those by estimate, and the options that ask for each. A tuning text asks for calibrated ones.
PLANS = {"winograd": ["--winograd"], "measured": ["--measure"], "calibrated": []}


def our_name(layout=None, plans=None):
    return " ".join(["convtranspose", *([plans] if plans else []), *([layout] if layout else [])])


class Ours:
    def __init__(self, command, threads, device=None, layout=None, plans=None, isa=None, tuning=None):
        self.name = our_name(layout, plans)
        self.command, self.options = command, ["--threads", str(threads)]
        if layout:
            self.options += ["--layout", layout]
        if device:
            self.options += ["--device", device]
        if plans:
            self.options += PLANS[plans]
        self.environment = dict(os.environ, CONVTRANSPOSE_TUNING=str(tuning)) if tuning else None
        if isa:
            self.options += ["--isa", isa]

    def prepare(self, folder):
        """y, and where it begins if not as the layer says."""
        self.model, self.rows = folder / "model.onnx", []
        self._call("run", self.model, folder / "x.pb", "--output-dir", folder)
        return numpy_helper.to_array(onnx.load_tensor(folder / "model" / "output_0.pb")), None

    def time(self, seconds):
        self.rows += json.loads(self._call("bench", "--json", "--min-time", str(seconds), self.model))

    def result(self):
        best = min(self.rows, key=lambda row: row["best_ms"])
        return {"best_ms": best["best_ms"], "turns_ms": [row["best_ms"] for row in self.rows],
                "median_ms": statistics.median(row["median_ms"] for row in self.rows),
                "runs": sum(row["runs"] for row in self.rows), "gflops": best["gflops"],
                "peak_gflops": max((row["peak_gflops"] for row in self.rows if row["peak_gflops"]), default=None),
                **{key: best[key] for key in ("variant", "isa", "device", "workspace_bytes", "packed_bytes", "plan_ms")}}

    def close(self):
        pass

    def _call(self, command, *arguments):
        line = [self.command, command, *self.options, *arguments]
        done = subprocess.run(line, check=False, capture_output=True, text=True, env=self.environment)
        if done.returncode:
            raise Failed(done.stderr.strip() or f"{command} ended with {done.returncode}")
        return done.stdout


class Peer:
    def __init__(self, module, setting, threads, log, isa=None):
        self.name, self.note, self.process = setting, "", None
        self.line = [sys.executable, "-m", "peers.worker", module, setting, str(threads)]
        self.log = log
        # Freed memory is kept: without that, each large result of a peer that allocates it costs page faults anew.
        self.environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS="1",
                                TF_CPP_MIN_LOG_LEVEL="3", MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(1 << 34))
        if isa and module in CAPPED:
            self.environment.update(cap_of(isa))

    def prepare(self, folder):
        if self.process is None:  # not yet, or the last layer ended it
            self.process = subprocess.Popen(self.line, cwd=HERE, env=self.environment, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.times, self.turns, self.medians = [], [], []
        answer = self._ask({"prepare": str(folder)})
        self.note = answer["note"]
        return np.load(folder / "y.npy"), answer["begin"]

    def time(self, seconds):
        times = self._ask({"time": seconds})["times_ms"]
        self.times += times
        self.turns.append(min(times))
        self.medians.append(statistics.median(times))

    def result(self):
        result = {"best_ms": min(self.times), "turns_ms": self.turns, "median_ms": statistics.median(self.medians),
                  "runs": len(self.times)}
        return {**result, "kernel": self.note} if self.note else result

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()

    def _ask(self, request):
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            status, self.process = self.process.wait(), None
            raise Failed(f"its process ended with {status}")
        answer = json.loads(line)
        if "unsupported" in answer:
            raise Refused(answer["unsupported"])
        if "error" in answer:
            raise Failed(answer["error"])
        return answer
