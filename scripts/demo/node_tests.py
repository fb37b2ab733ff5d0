#!/usr/bin/env python3
"""Writes ONNX's own ConvTranspose tests, from the installed onnx package, as backend test folders:

    OUT/<test>/model.onnx
    OUT/<test>/test_data_set_0/input_0.pb ... output_0.pb

The package makes its node tests for the operator's latest version; the same nodes are also valid in the earlier ones,
and are written for those too, with the version in the name. Tests that the package carries as files are copied.
"""
import argparse
import pathlib
import shutil
import warnings

import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests

OP = "ConvTranspose"
EARLIER = {11: 6, 1: 3}  # version of the operator: that of the IR it came with


def write_test(folder, model, data_sets):
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for i, (inputs, outputs) in enumerate(data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir()
        for kind, values, infos in (("input", inputs, model.graph.input), ("output", outputs, model.graph.output)):
            for j, (value, info) in enumerate(zip(values, infos, strict=True)):
                (data / f"{kind}_{j}.pb").write_bytes(numpy_helper.from_array(value, info.name).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", type=pathlib.Path)
    out = parser.parse_args().out
    written = 0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collecting makes the tests of all operators, some of which divide by zero
        cases = collect_testcases(OP)
    for case in cases:
        shutil.rmtree(out / case.name, ignore_errors=True)
        write_test(out / case.name, case.model, case.data_sets)
        written += 1
        for version, ir_version in EARLIER.items():
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            model.opset_import[0].version = version
            model.ir_version = ir_version
            folder = out / f"{case.name}_v{version}"
            shutil.rmtree(folder, ignore_errors=True)
            write_test(folder, model, case.data_sets)
            written += 1

    for kind in ("pytorch-operator", "pytorch-converted"):
        for case in load_model_tests(kind=kind):
            if not case.model_dir:
                continue
            nodes = onnx.load(pathlib.Path(case.model_dir) / "model.onnx").graph.node
            if {node.op_type for node in nodes} == {OP}:
                shutil.rmtree(out / case.name, ignore_errors=True)
                shutil.copytree(case.model_dir, out / case.name)
                written += 1
    print(f"{written} test folders of onnx {onnx.__version__} in {out}")


if __name__ == "__main__":
    main()
