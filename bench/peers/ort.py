"""ONNX Runtime's CPU provider, input and output allocated and bound beforehand."""
import onnxruntime as ort

from . import Runner

PACKAGE = "onnxruntime"

ort.set_default_logger_severity(3)


def nchw(layer, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(layer.model, options, providers=["CPUExecutionProvider"])
    y = ort.OrtValue.ortvalue_from_numpy(session.run(None, {"x": layer.x})[0])
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(layer.x))
    binding.bind_ortvalue_output("y", y)
    return Runner(lambda: session.run_with_iobinding(binding), y.numpy)


SETTINGS = {"ort": nchw}
