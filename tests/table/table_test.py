"""The table of kernels and the script that expands it (kernels/): python -m unittest table_test, in this folder."""
from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import math
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from kernels import generate, source, table  # noqa: E402
from kernels.lines import Tiled, Variants  # noqa: E402
from kernels.model import TableError  # noqa: E402
from kernels.taps import parse_taps  # noqa: E402

PLATFORMS = [("Linux", "x86_64"), ("Windows", "AMD64"), ("Darwin", "arm64"), ("Linux", "aarch64"), ("Linux", "armv7"),
             ("WASI", "wasm32"), ("Emscripten", "x86"), ("Android", "aarch64")]


class Generated(unittest.TestCase):
    """Runs the script as CMake does."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="table_test_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def generate(self, *options: str, system: str = "Linux", processor: str = "x86_64") -> Path:
        generate.main(["--output", str(self.folder), "--system", system, "--processor", processor, *options])
        return self.folder

    def kernels(self, *options: str, **platform: str) -> list[dict]:
        return json.loads((self.generate(*options, **platform) / "kernels.json").read_text())["kernels"]

    def commands(self) -> dict[tuple[str, str], list[str]]:
        """The arguments of each command behind ISA and name."""
        lines = re.findall(r"^convtranspose_kernel\((.*)\)$", (self.folder / "kernels.cmake").read_text(), re.MULTILINE)
        return {tuple(line.split()[:2]): line.split()[2:] for line in lines}

    def refusal(self, *options: str, **platform: str) -> str:
        with self.assertRaises(SystemExit) as refused:
            self.generate(*options, **platform)
        return str(refused.exception)


class Taps(unittest.TestCase):
    def test_phases_read_what_the_definition_says(self):
        """Output o gets x[i] * w[k] where o = i * stride - pad + k."""
        for kernel in range(1, 10):
            for stride in range(1, kernel + 1):
                for pad in range(kernel):
                    taps = parse_taps(f"{kernel}s{stride}p{pad}")
                    packed = [k for remainder in range(stride) for k in reversed(range(remainder, kernel, stride))]
                    for phase, tap in enumerate(taps.phases):
                        offsets = {packed[tap.first + i]: tap.offset + i for i in range(tap.count)}
                        expected = {k: (phase + pad - k) // stride for k in range(kernel) if (phase + pad - k) % stride == 0}
                        self.assertEqual(offsets, expected, f"{kernel}s{stride}p{pad}, phase {phase}")

    def test_forms(self):
        taps = parse_taps("9s2p4")
        self.assertEqual(taps.text, "1/-2:5:0,-1:4:5")
        self.assertEqual(taps.numbers, [-2, 5, 0, 0, -1, 4, 5, 1])
        self.assertEqual(taps.count, 0)
        self.assertEqual(parse_taps("4s2p1").count, 2)

    def test_refusals(self):
        with self.assertRaisesRegex(TableError, "not of the form"):
            parse_taps("4s2")
        with self.assertRaisesRegex(TableError, "phase without any"):
            parse_taps("2s3p0")


class Table(Generated):
    def test_every_platform_has_a_reference_of_every_type_at_the_end(self):
        for system, processor in PLATFORMS:
            with self.subTest(system=system, processor=processor):
                kernels = self.kernels(system=system, processor=processor)
                references = {kernel["name"] for kernel in kernels if kernel["generator"] == "reference"}
                types = ("f16", "bf16", "f32", "f64", "i16", "i16_f32", "i16_s32", "i16_f64")
                self.assertLessEqual({f"reference_{t}" for t in types}, references)
                self.assertEqual(kernels[-1]["generator"], "reference")

    def test_the_contract_has_the_same_isas_and_families(self):
        text = (ROOT / "kernel_contract/kernel_types.h").read_text(encoding="utf-8")
        isas = re.findall(r'\{"(\w+)", Isa::(\w+), Isa::(\w+), (\d+), \d+\}', text)
        self.assertEqual(isas, [(isa.name, isa.enumerator, table.ISAS[isa.adds_to or isa.name].enumerator, str(4 * isa.lanes))
                                for isa in table.ISAS.values()])
        self.assertEqual(re.findall(r'\{"(\w+)", Family::(\w+)\}', text),
                         [(family.name, family.enumerator) for family in table.FAMILIES])
        for enumeration in ("Isa", "Family"):
            enumerators = re.findall(r"k\w+", re.search(rf"enum class {enumeration} \{{([^}}]*)\}};", text)[1])
            known = table.ISAS.values() if enumeration == "Isa" else table.FAMILIES
            self.assertEqual(sorted(enumerators), sorted(one.enumerator for one in known))

    def test_names_are_what_rows_say(self):
        """docs/kernel-names.md, checked on every variant."""
        pattern = re.compile(r"(?P<family>[a-z_]+?)_"
                             r"(?P<dtype>b?f16|f32(?:_(?:b?f16|s8)w)?|f64|[hb]16|i8(?:_f32)?|i16(?:_f32|_s32|_f64)?)"
                             r"(?:_(?P<output_order>planar|channels)(?:_s(?P<w>\d+)(?:x(?P<h>\d+))?)?"
                             r"_(?P<tile>\d+x\d+(?:x\d+)?)(?:_(?P<taps>[0-9spx]+|t\d+x\d+)(?:_m(?P<oc>\d+))?)?)?")
        for system, processor in PLATFORMS:
            for kernel in self.kernels(system=system, processor=processor):
                if kernel["kind"] != "variant":
                    continue
                row, name = kernel["row"], pattern.fullmatch(kernel["name"])
                self.assertTrue(name, kernel["name"])
                self.assertEqual(row["family"], name["family"])
                self.assertEqual(row["dtype"], table.DTYPES[name["dtype"]].y)
                if name["output_order"]:
                    self.assertEqual((row["output_order"], row["stride_w"], row["stride_h"]),
                                     (name["output_order"], int(name["w"] or 0), int(name["h"] or 0)))
                self.assertEqual("built_in" in row, bool(name["taps"]))
                if name["oc"]:
                    self.assertEqual(row["built_in"]["oc"], int(name["oc"]))
                self.assertEqual(kernel["function"], f"convt_{kernel['name']}_{kernel['isa']}")

    def test_a_kernel_with_taps(self):
        kernel = next(k for k in self.kernels() if k["function"] == "convt_small_oc_f32_planar_s2x2_3x2_4s2p1_avx512")
        self.assertEqual(kernel["parameters"],
                         ["output_order=planar", "arithmetic=float", "x_type=float32", "y_type=float32", "stride_w=2", "stride_h=2",
                          "tile_oc=3", "tile_q=32", "tile_qh=1", "table_w=1/-1:2:2,0:2:0", "count_w=2", "table_h=1/-1:2:2,0:2:0",
                          "count_h=2", "ic=0", "oc=0", "unrolled_axes=2", "tap_offset_order=true"])
        cpp = (self.folder / "float_kernels.cpp").read_text()
        function = kernel["function"]
        self.assertIn(f"\nConvSignature {function};\n", cpp)
        self.assertIn(f"\nconst std::int32_t taps_{function}_h[] = {{-1, 2, 2, 0, 0, 2, 0, 1}};\n", cpp)
        self.assertIn(f"\nconst BuiltIn built_in_{function} = {{0, 0, {{{{taps_{function}_w, 2, 1, 2, 0}}, "
                      f"{{taps_{function}_h, 2, 1, 2, 0}}, {{nullptr, 0, 0, 0, 0}}}}, true}};\n", cpp)
        self.assertIn('\n    {"small_oc_f32_planar_s2x2_3x2_4s2p1", Isa::kAvx512, Family::kSmallOc, OutputOrder::kPlanar, '
                      f"Arithmetic::kFloat, CONVT_F32, 2, 2, 3, 32, 1, 16, {function}, &built_in_{function}}},\n", cpp)

    def test_targets(self):
        self.generate()
        commands = self.commands()
        end = "-no_runtime-no_asserts-no_bounds_query"
        self.assertEqual(commands["avx2", "oc_vectorized_f32_planar_s2_2x6"][:4],
                         ["oc_vectorized", "oc_vectorized", "object", f"target=x86-64-linux-sse41-avx-avx2-f16c-fma{end}"])
        # No instructions of ISAs that add to another one in copies; strict rounding where it is seen.
        self.assertEqual(commands["avx512_vnni", "copy_i16_planar_2"][3], commands["avx512", "copy_f32_planar_1"][3])
        for name in ("post_f32_clip", "oc_vectorized_i16_f32_planar_2x6"):
            isas = [isa for isa, other in commands if other == name]
            self.assertTrue(all("-strict_float-" in commands[isa, name][3] for isa in isas), name)
        self.assertNotIn("strict", commands["avx512", "oc_vectorized_i16_planar_2x12"][3])

    def test_f16_conversions_of_neon(self):
        self.generate(processor="aarch64")
        commands = self.commands()
        converts = {name for (isa, name), arguments in commands.items() if isa == "neon" and "arm_fp16" in arguments[3]}
        self.assertIn("small_oc_f16_planar_s2x2_1x4", converts)
        self.assertNotIn("oc_vectorized_f16_planar_2x8", converts)
        self.assertFalse([name for name in converts if "_f16" not in name])

    def test_arm32_keeps_what_llvm_was_given(self):
        for processor in ("arm", "armhf", "armv7l", "armv7-a", "armv8l", "armv7"):
            self.generate(processor=processor)
        for (_, name), arguments in self.commands().items():
            self.assertEqual(arguments[2] == "object,llvm_assembly", "f64" in name or "reference" in name, name)
        self.assertNotIn(("neon32", "col2im_f64_s2"), self.commands())

    def test_one_line_adds_a_variant(self):
        before = {kernel["function"] for kernel in self.kernels()}
        line = Variants(table.OW_VECTORIZED, "avx2 x86_64", "f32", "planar", strides="5", tiles="2x2")
        with mock.patch.object(table, "LAST", [line, *table.LAST]):
            after = {kernel["function"] for kernel in self.kernels()}
        self.assertEqual(after - before,
                         {"convt_ow_vectorized_f32_planar_s5_2x2_avx2", "convt_ow_vectorized_f32_planar_s5_2x2_x86_64"})

    def test_mistakes_are_named(self):
        wide = table.OW_VECTORIZED
        for line, words in [(Variants(wide, "avx3", "f32", "planar", strides="1", tiles="2x2"), "no ISA or group 'avx3'"),
                            (Variants(wide, "avx2", "f33", "planar", strides="1", tiles="2x2"), "no type 'f33'"),
                            (Variants(wide, "avx2", "f32", "planar", strides="2", taps="3s1p1", tiles="2x2"), "stride"),
                            (Variants(wide, "avx2", "f32", "planar", strides="1", tiles="2y12"), "'2y12' is not A or AxB"),
                            (Variants(wide, "avx2", "f32", "planar", strides="1x1x1", tiles="2x2"), "'1x1x1' is not A or AxB"),
                            (Variants(wide, "avx2", "f32", "planar", strides="1", tiles="6x2"), "twice")]:
            with mock.patch.object(table, "LAST", [line, *table.LAST]):
                self.assertIn(words, self.refusal())

    def test_a_family_is_renamed_in_one_place(self):
        """All but the lines that use its constant, which stay."""
        own = table.SMALL_OC
        renamed = dataclasses.replace(own, name="of_few", enumerator="kOfFew")

        def with_new_name(lines):
            return [dataclasses.replace(line, family=renamed) if getattr(line, "family", None) is own else line for line in lines]

        before = {kernel["function"] for kernel in self.kernels()}
        x86 = dataclasses.replace(table.ARCHITECTURES[0], lines=with_new_name(table.X86))
        families = [renamed if family is own else family for family in table.FAMILIES]
        enumerators = {**source.ENUMERATORS, "family": {family.name: f"Family::{family.enumerator}" for family in families}}
        with mock.patch.multiple(table, ARCHITECTURES=[x86], FAMILIES=families), \
                mock.patch.object(source, "ENUMERATORS", enumerators):
            kernels = self.kernels()
        self.assertEqual({re.sub("^convt_small_oc_", "convt_of_few_", function) for function in before},
                         {kernel["function"] for kernel in kernels})
        self.assertEqual({kernel["generator"] for kernel in kernels if kernel["name"].startswith("of_few_")}, {"of_few"})
        self.assertIn("Family::kOfFew", (self.folder / "float_kernels.cpp").read_text())


class Selection(Generated):
    def test_types_families_and_isas(self):
        kernels = self.kernels("--types", "f32", "--families", "ow_vectorized", "--isas", "avx2;x86_64")
        self.assertEqual({kernel["isa"] for kernel in kernels}, {"avx2", "x86_64"})
        self.assertEqual({kernel["row"]["family"] for kernel in kernels if kernel["kind"] == "variant"},
                         {"ow_vectorized", "reference"})
        self.assertNotIn("winograd_input", {kernel["kind"] for kernel in kernels})  # without the family that multiplies
        self.assertEqual({kernel["component"] for kernel in kernels}, {"float"})
        self.assertFalse((self.folder / "quantized_kernels.cpp").exists())

    def test_types_that_go_with_another(self):
        names = {word for kernel in self.kernels("--types", "bf16") if kernel["kind"] == "variant"
                 for word in kernel["name"].split("_") if word in table.DTYPES}
        self.assertEqual(names, {"bf16", "b16", "f32"})

    def test_all_kernels_are_known_as_such(self):
        def has_all(*options: str) -> bool:
            return "set(has_all_kernels TRUE)" in (self.generate(*options) / "kernels.cmake").read_text()

        self.assertTrue(has_all())
        self.assertTrue(has_all("--types", "f16;bf16;f32;light;f64;quantized",
                                "--families", "oc_vectorized;amx;ow_vectorized;small_oc;depthwise"))
        self.assertFalse(has_all("--types", "f32"))
        self.assertFalse(has_all("--families", ""))
        self.assertFalse(has_all("--isas", "x86_64"))
        self.assertTrue(has_all("--isas", "all"))
        self.assertFalse(has_all("--types", "f32;f32;f32;f32;f32;f32"))

    def test_refusals(self):
        self.assertEqual(self.refusal("--types", "f32;f99"),
                         "CONVTRANSPOSE_TYPES: there is no 'f99'; there are f16 bf16 f32 light f64 quantized")
        self.assertEqual(self.refusal("--types", ""), "CONVTRANSPOSE_TYPES is empty")
        self.assertEqual(self.refusal("--isas", "amx;avx512"),
                         "CONVTRANSPOSE_ISAS: amx adds to avx512_vnni, which must be in the list too")
        self.assertIn("there is no 'amx'", self.refusal("--isas", "amx", system="Windows", processor="AMD64"))
        for processor in ("riscv64", "arm64e", "arm64ec", "armeb", "armv5te", "armv7b", "armv7e-m"):
            self.assertIn(f"processor '{processor}'", self.refusal(processor=processor))
        self.assertIn("CMAKE_OSX_ARCHITECTURES is 'arm64;x86_64'", self.refusal(system="Darwin", processor="arm64;x86_64"))
        self.assertIn("system 'Plan9'", self.refusal(system="Plan9"))
        self.assertIn("only for x86-64 Linux", self.refusal("--devices", "cuda", processor="aarch64"))

    def test_help(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
            generate.main(["--help"])
        self.assertIn("kernels.cmake", out.getvalue())


class Files(Generated):
    def test_one_command_for_each_object(self):
        folder = self.generate("--devices", "opencl;cuda")
        objects = re.findall(r"^ +(\S+)/(\S+)\.o\b", (folder / "kernels.cmake").read_text(), re.MULTILINE)
        self.assertEqual(len(objects), len(set(objects)))
        self.assertEqual(set(objects), set(self.commands()))
        listed = (folder / "kernels.txt").read_text().splitlines()
        self.assertEqual(len(listed), len([isa for isa, _ in objects if isa not in ("cuda", "opencl")]))
        self.assertTrue(all((folder / "kernels" / isa).is_dir() for isa, _ in objects))

    def test_what_stays_the_same_is_not_written(self):
        files = [file for file in self.generate().rglob("*") if file.is_file()]
        times = {file: file.stat().st_mtime_ns for file in files}
        self.generate()
        self.assertEqual(times, {file: file.stat().st_mtime_ns for file in files})

    def test_objects_for_windows(self):
        folder = self.generate(system="Windows", processor="AMD64")
        self.assertTrue(all(line.endswith(".obj") for line in (folder / "kernels.txt").read_text().splitlines()))

    def test_device_kernels(self):
        folder = self.generate("--devices", "opencl;cuda")
        costs = json.loads((ROOT / "kernels" / "device_costs.json").read_text())
        own = ", ".join(str(costs["kernels"]["tiled_u8_dots_64x64"][key])
                        for key in ("step_cycles", "step_latency", "block_latency", "resident_blocks"))
        row = ('{"tiled_u8_dots_64x64", DeviceCall::kByPhase, Arithmetic::kInt8, false, CONVT_U8, CONVT_U8, 64, 64, 32, 64, '
               f"{{{own}}}, convt_tiled_u8_dots_64x64_cuda_argv}},")
        text = (folder / "cuda_kernels.cpp").read_text()
        self.assertIn(row, text)
        self.assertIn(f"{{{costs['launch_cycles']}, {costs['bytes_per_cycle']}, {costs['strided']}}}", text)
        commands = self.commands()
        self.assertEqual(commands["cuda", "combine_f32_f16"][:3], ["gpu", "gpu_combine", "object,device_code"])
        self.assertTrue(commands["cuda", "combine_f32_f16"][3].endswith("-strict_float"))
        self.assertIn("-cl_doubles-", commands["opencl", "each_f64_planar"][3])
        self.assertEqual(json.loads((folder / "kernels" / "blocks.json").read_text())["tiled_f32_32x64"], [16, 4])

    def test_device_kernels_must_be_staged_by_all_threads_alike(self):
        with self.assertRaisesRegex(TableError, "a chunk of 16x64 cannot be staged by 64 threads"):
            list(Tiled("tiled", "f32", "16x64", oc="4x4x1", p="4x16x1").kernels())


class Tuned(Generated):
    def tuned(self, **changes) -> str:
        folder = self.folder / "tuned"
        folder.mkdir(exist_ok=True)
        axis = {"table": [], "phases": 0, "step": 0, "count": 0, "out": 0}
        row = {"name": "small_oc_f32_planar_s0x0_1x4x1_12345678", "isa": "avx512", "family": "small_oc", "output_order": "planar",
               "arithmetic": "float", "dtype": "f32", "stride_w": 0, "stride_h": 0, "tile_oc": 1, "tile_q": 64, "tile_qh": 1,
               "lanes": 16, "built_in": {"ic": 8, "oc": 3, "axes": [axis] * 3, "x_in_place": False}}
        layer = {"record": {"isa": "avx512", "problem": "f32 nchw n1", "variant": row["name"]}, "measured": {"ms": 0.5},
                 "kernel": {"generator": "small_oc", "parameters": ["output_order=planar"], "row": {**row, **changes}}}
        (folder / "one.json").write_text(json.dumps(layer))
        return str(folder)

    def test_kernel_and_record_come_first(self):
        kernels = self.kernels("--tuned", self.tuned())
        self.assertEqual(kernels[0]["function"], "convt_small_oc_f32_planar_s0x0_1x4x1_12345678_avx512")
        cpp = (self.folder / "float_kernels.cpp").read_text()
        self.assertIn('\\"kernels\\": \\"" CONVTRANSPOSE_KERNELS_VERSION "\\", \\"cpu\\": \\"*\\", \\"isa\\": \\"avx512\\"', cpp)
        self.assertIn(" kRecords};", cpp)

    def test_what_is_not_built_is_left_out(self):
        for options in (["--types", "f64"], ["--families", "ow_vectorized"], ["--isas", "avx2"]):
            self.generate("--tuned", self.tuned(), *options)
            self.assertNotIn("12345678", (self.folder / "float_kernels.cpp").read_text())
            self.assertIn(" nullptr};", (self.folder / "float_kernels.cpp").read_text())

    def test_mistakes_are_named(self):
        self.assertIn("there is no family 'several'", self.refusal("--tuned", self.tuned(family="several")))
        file = Path(self.tuned()) / "one.json"
        good = json.loads(file.read_text())
        for layer, message in (([], "one.json"), ({"record": 3}, "one.json"), ({**good, "measured": {"ms": math.nan}}, "ms is nan"),
                               ({**good, "measured": {"ms": 0}}, "ms is 0, must be a number above 0")):
            file.write_text(json.dumps(layer))
            refusal = self.refusal("--tuned", str(file.parent))
            self.assertIn(message, refusal)
            self.assertNotIn("Traceback", refusal)

    def test_shipped_layers_are_in_the_table(self):
        functions = [kernel["function"] for kernel in self.kernels("--tuned", str(ROOT / "schedules" / "tuned"))]
        for file in (ROOT / "schedules" / "tuned").glob("*.json"):
            record = json.loads(file.read_text())["record"]
            self.assertIn(f"convt_{record['variant']}_{record['isa']}", functions)


if __name__ == "__main__":
    unittest.main()
