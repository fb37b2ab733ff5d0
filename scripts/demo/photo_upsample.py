#!/usr/bin/env python3
"""Shrinks a photograph to a quarter of its width and height and enlarges it again with a transposed convolution:
bilinear interpolation is a depthwise ConvTranspose of kernel 8, stride 4 and pad 2 with fixed weights, as segmentation
networks use.

Writes photo_original.png, photo_small.png and photo_upsampled.png, checks the result against the formula of bilinear
interpolation, and reports how much of the original is recovered (PSNR).
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import matplotlib.cbook
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCALE = 4
KERNEL = 2 * SCALE
PAD = SCALE // 2


def bilinear_model(channels, height, width):
    line = 1 - np.abs(np.arange(KERNEL) - (KERNEL - 1) / 2) / SCALE  # a triangle: 1/8, 3/8, 5/8, 7/8, 7/8, ...
    w = np.broadcast_to(np.outer(line, line), (channels, 1, KERNEL, KERNEL)).astype(np.float32)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], name="bilinear", group=channels,
                            strides=[SCALE, SCALE], pads=[PAD] * 4)
    graph = helper.make_graph(
        [node], "bilinear_upsampling",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, height, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, height * SCALE, width * SCALE])],
        [numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)


def upsample(image, command):
    """image (height, width, channels), enlarged by `convtranspose run`."""
    # To the operator there is nothing beyond the edge, which would darken it. So the edge is repeated once all around,
    # and what comes of that is cut off.
    x = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge").transpose(2, 0, 1)[np.newaxis].astype(np.float32)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        onnx.save(bilinear_model(*x.shape[1:]), folder / "upsample.onnx")
        (folder / "x.pb").write_bytes(numpy_helper.from_array(x, "x").SerializeToString())
        line = [command, "run", folder / "upsample.onnx", folder / "x.pb", "--output-dir", folder / "out"]
        subprocess.run(line, check=True)
        y = numpy_helper.to_array(onnx.load_tensor(folder / "out" / "upsample" / "output_0.pb"))
    return y[0].transpose(1, 2, 0)[SCALE:-SCALE, SCALE:-SCALE]


def bilinear(image):
    """The same by the formula: pixel centres are mapped, the two nearest on each axis are blended."""
    for axis in (0, 1):
        extent = image.shape[axis]
        position = (np.arange(extent * SCALE) + 0.5) / SCALE - 0.5
        low = np.floor(position).astype(int)
        fraction = (position - low).reshape([-1 if a == axis else 1 for a in range(3)])
        below, above = (np.take(image, np.clip(i, 0, extent - 1), axis=axis) for i in (low, low + 1))
        image = below * (1 - fraction) + above * fraction
    return image


def psnr(a, b):
    return 10 * np.log10(255**2 / np.mean((a - b) ** 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "demo-output", help="folder for the pictures")
    parser.add_argument("--convtranspose", type=pathlib.Path, default=ROOT / "build" / "bin" / "convtranspose")
    arguments = parser.parse_args()

    with matplotlib.cbook.get_sample_data("grace_hopper.jpg") as file:
        photo = np.asarray(Image.open(file).convert("RGB"), dtype=np.float64)
    height, width = (extent // SCALE for extent in photo.shape[:2])
    photo = photo[:height * SCALE, :width * SCALE]
    small = np.rint(photo.reshape(height, SCALE, width, SCALE, 3).mean(axis=(1, 3)))

    upsampled = upsample(small, arguments.convtranspose)
    error = np.abs(upsampled - bilinear(small)).max()
    nearest = small.repeat(SCALE, axis=0).repeat(SCALE, axis=1)

    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, image in (("original", photo), ("small", small), ("upsampled", upsampled)):
        pixels = np.clip(np.rint(image), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(arguments.out / f"photo_{name}.png")
        print(f"{arguments.out / f'photo_{name}.png'}: {pixels.shape[1]} x {pixels.shape[0]}")
    print(f"largest difference from the formula of bilinear interpolation: {error:.1e} of 255")
    print(f"PSNR against the original: {psnr(upsampled, photo):.2f} dB "
          f"(repeating each pixel {SCALE} x {SCALE} times: {psnr(nearest, photo):.2f} dB)")
    if upsampled.shape != photo.shape or not error < 1e-3:
        sys.exit("the upsampled picture is not the bilinear one")


if __name__ == "__main__":
    main()
