"""convtranspose.torch: modules and the custom operator, where PyTorch is installed."""

import copy
import functools
import gc
import importlib.util
import io
import os
import pickle
import resource
import threading
import unittest
import unittest.mock

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "expecttest"))
if HAS_TORCH:
    import convtranspose.torch as ct
    import torch
    import torch.nn.functional as F
    import torch.nn.utils.prune
    from torch import nn

    CLASSES = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    FUNCTIONS = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)


def layer(axes=2, c=4, m=6, k=3, dtype=None, **attributes):
    torch.manual_seed(axes)
    return CLASSES[axes - 1](c, m, k, dtype=dtype, **attributes)


def draw(axes=2, n=2, c=4, extent=5, dtype=None):
    torch.manual_seed(7)
    return torch.randn(n, c, *range(extent, extent + axes)).to(dtype or torch.float32)


def both(module):
    """A module, and a copy that this library computes."""
    ours = copy.deepcopy(module)
    ct.replace_(ours)
    return module, ours


@unittest.skipUnless(HAS_TORCH, "torch or expecttest is not installed")
class TorchTest(unittest.TestCase):
    def setUp(self):
        threads = torch.get_num_threads()
        self.addCleanup(torch.set_num_threads, threads)

    def assert_close(self, ours, stock, dtype=None):
        dtype = dtype or stock.dtype
        self.assertEqual((ours.shape, ours.dtype), (stock.shape, stock.dtype))
        bound = 64 * torch.finfo(dtype).eps * max(1.0, float(stock.detach().double().abs().max()) if stock.numel() else 1.0)
        self.assertLessEqual(float((ours.detach().double() - stock.detach().double()).abs().max()) if stock.numel() else 0.0, bound)

    def assert_same(self, ours, stock, x, **keywords):
        """The same values with and without gradients, which go by the operator and by a plan."""
        self.assert_close(ours(x, **keywords).detach(), stock(x, **keywords).detach())
        for _ in range(2):  # the second call finds a plan
            with torch.inference_mode():
                self.assert_close(ours(x, **keywords), stock(x, **keywords))

    @functools.cached_property
    def uses_plans(self):
        """A patch that counts the plans that modules make."""
        return unittest.mock.patch("convtranspose._torch_operator.Plan", wraps=importlib.import_module("convtranspose").Plan)


class LightWeights(TorchTest):
    """Each packed type against the same weights rounded beforehand."""

    @staticmethod
    def rounded(module, weights):
        module = copy.deepcopy(module)
        with torch.no_grad():
            w = module.weight.unflatten(0, (module.groups, -1))
            if weights == "int8":
                scale = w.abs().amax((1, *range(3, w.dim())), keepdim=True) / 127
                w = (w / scale).round() * scale
            else:
                w = w.to(getattr(torch, weights)).float()
            module.weight.copy_(w.flatten(0, 1))
        return module

    def test_types(self):
        for weights in ("float16", "bfloat16", "int8"):
            for attributes in ({"stride": 2, "padding": 1}, {"groups": 2, "bias": False}):
                with self.subTest(weights=weights, **attributes):
                    stock = layer(**attributes).eval()
                    ours, x = copy.deepcopy(stock), draw()
                    ct.replace_(ours, weights=weights)
                    wanted = self.rounded(stock, weights)
                    self.assertGreater(float((wanted(x) - stock(x)).detach().abs().max()), 0)
                    self.assert_same(ours, wanted, x)
                    self.assertIs(ours.weight.dtype, torch.float32)
                    y = torch.compile(ours, backend="eager")(x)  # which calls the operator
                    self.assert_close(y, wanted(x))
                    x.requires_grad_()
                    ours(x).sum().backward()
                    self.assert_close(ours.weight.grad, torch.autograd.grad(stock(x).sum(), stock.weight)[0])

    def test_quantizing_x(self):
        stock = layer(stride=2).eval()
        ours, x = copy.deepcopy(stock), draw()
        ct.replace_(ours, weights="int8", quantizes_x=True)
        scale = float(x.max() - x.min()) / 255
        bound = scale / 2 * float(stock.weight.detach().abs().sum((0, 2, 3)).max())
        with torch.no_grad():
            error = float((ours(x) - self.rounded(stock, "int8")(x)).abs().max())
        self.assertTrue(0 < error <= bound, (error, bound))

    def test_what_a_type_does_not_hold(self):
        x = draw()
        for weights, value in (("float16", 1e6), ("int8", float("inf"))):
            stock = layer().eval()
            with torch.no_grad():
                stock.weight[0, 0] = value
                ours = copy.deepcopy(stock)
                ct.replace_(ours, weights=weights)
                wanted = stock(x)
                self.assertTrue(torch.allclose(ours(x), wanted, rtol=1e-4, equal_nan=True))
        zero = layer().eval()
        with torch.no_grad():
            zero.weight.zero_()
            ct.replace_(zero, weights="int8")
            self.assertTrue(torch.equal(zero(x), zero.bias.view(-1, 1, 1).expand_as(zero(x))))
        other = layer(dtype=torch.float64).eval()
        ours = copy.deepcopy(other)
        ct.replace_(ours, weights="int8")
        self.assert_same(ours, other, draw(dtype=torch.float64))

    def test_wrong_options(self):
        for words, options in (("weights is 'int4'", {"weights": "int4"}),
                               ("quantizes_x is True and weights None", {"quantizes_x": True}),
                               ("quantizes_x is 1", {"quantizes_x": 1, "weights": "int8"})):
            with self.assertRaisesRegex(ValueError, words):
                ct.replace_(layer(), **options)


class Values(TorchTest):
    def test_axes_and_attributes(self):
        for axes in (1, 2, 3):
            for attributes in ({}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "bias": False},
                               {"dilation": 2, "padding": 2}):
                with self.subTest(axes=axes, **attributes):
                    stock, ours = both(layer(axes, **attributes))
                    self.assert_same(ours, stock, draw(axes))
                    self.assert_same(ours, stock, draw(axes)[0])
                    self.assert_same(ours, stock, draw(axes, extent=6))

    def test_tensors_stay_resizable(self):
        """As FSDP asks of weights, and as tensors that are used again for other shapes are."""
        for train in (False, True):
            x, ours = draw(), both(layer())[1].train(train)
            y = ours(x).detach()
            with torch.no_grad():
                tensors = x, y, ours.weight, ours.bias, ours(x)
            self.assertEqual([tensor.untyped_storage().resizable() for tensor in tensors], [True] * 5)

    def test_types(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            with self.subTest(dtype=dtype):
                stock, ours = both(layer(dtype=dtype, stride=2))
                x = draw(dtype=dtype)
                with torch.no_grad():
                    exact = stock.double()(x.double())
                    self.assert_close(ours(x), exact.to(dtype))
                self.assert_close(ours(x).detach(), exact.to(dtype))
                self.assertEqual(ours(x).dtype, dtype)

    def test_a_type_of_pytorch_alone(self):
        stock, ours = both(layer(stride=2))
        x = torch.complex(draw(), draw(extent=5).flip(0))
        stock.to(torch.complex64), ours.to(torch.complex64)
        with torch.no_grad():
            self.assertLess(float((ours(x) - stock(x)).abs().max()), 1e-5)
        report = ct.replace_(nn.Sequential(layer(dtype=torch.complex64)))
        self.assertIn("complex64", report.left["0"])

    def test_tensors_of_other_kinds(self):
        stock, ours = both(layer(stride=2))
        with torch.no_grad():
            x = draw().to_mkldnn()
            self.assertTrue(torch.equal(ours(x).to_dense(), stock(x).to_dense()))
        for wrong in (None, [1.0], draw().numpy()):
            with self.assertRaisesRegex(TypeError, "must be Tensor"):
                ours(wrong)
        # The imaginary part of a conjugate is a view that is negated when it is read.
        for name in ("weight", "bias"):
            for module in (stock, ours):
                value = getattr(module, name).detach()
                setattr(module, name, nn.Parameter(torch.complex(value, value).conj().imag))
            self.assertTrue(getattr(ours, name).is_neg())
            self.assert_same(ours, stock, draw())

    def test_output_size(self):
        stock, ours = both(layer(stride=3))
        for size in ((15, 18), (17, 20), (2, 6, 16, 19)):
            self.assert_same(ours, stock, draw(), output_size=size)
        with self.assertRaises(ValueError):
            ours(draw(), output_size=(30, 30))

    def test_memory_formats(self):
        for axes, memory_format in ((2, "channels_last"), (3, "channels_last_3d")):
            stock, ours = both(layer(axes, stride=2))
            x = draw(axes).contiguous(memory_format=getattr(torch, memory_format))
            self.assert_same(ours, stock, x)
            with torch.no_grad():
                self.assertTrue(ours(x).is_contiguous(memory_format=getattr(torch, memory_format)))
                self.assertTrue(ours(x.contiguous()).is_contiguous())
            self.assertTrue(ours(x).is_contiguous(memory_format=getattr(torch, memory_format)))
            weights_too = ours.to(memory_format=getattr(torch, memory_format))
            self.assert_same(weights_too, stock, x)

    def test_views(self):
        stock, ours = both(layer(stride=2))
        wide = draw(extent=9)
        for x in (wide[..., 2:7], wide[:, :, ::2], wide[..., ::2], wide.transpose(2, 3), wide[:1].expand(3, -1, -1, -1),
                  torch._neg_view(wide), wide[:0]):
            self.assert_same(ours, stock, x)

    def test_wrong_input(self):
        _, ours = both(layer())
        for x in (draw(c=5), draw(axes=1)[0], draw(axes=3), draw(dtype=torch.float64), draw().to("meta"), draw().int()):
            for grad in (False, True):
                with self.subTest(x=x.shape, dtype=x.dtype), torch.set_grad_enabled(grad), self.assertRaises(RuntimeError):
                    ours(x)

    def test_empty_output(self):
        """PyTorch takes extents of 0 in some cases and refuses them in others; so do we."""
        taken = 0
        for batch, groups, dtype in ((1, 1, torch.float32), (1, 1, torch.bfloat16), (1, 2, torch.float32), (0, 1, torch.float32)):
            stock, ours = both(layer(k=2, padding=1, groups=groups, dtype=dtype))
            x = torch.randn(batch, 4, 1, 3).to(dtype)
            for grad in (False, True):
                with self.subTest(batch=batch, groups=groups, dtype=dtype, grad=grad), torch.set_grad_enabled(grad):
                    try:
                        wanted = stock(x)
                    except RuntimeError:
                        with self.assertRaises(RuntimeError):
                            ours(x)
                        continue
                    taken += 1
                    for _ in range(3):
                        self.assertEqual(ours(x).shape, wanted.shape)
        self.assertGreater(taken, 0)
        with self.assertRaisesRegex(RuntimeError, "-1 positions"):
            both(layer(k=1, padding=1))[1](draw(extent=1))

    def test_attributes_that_were_set(self):
        for value in ([2, 1], 2, [2], torch.Size([2, 1])):
            stock, ours = both(layer(k=3, padding=1))
            stock.stride = ours.stride = value
            stock.dilation = ours.dilation = [1, 2]
            for grad in (False, True):
                with self.subTest(value=value, grad=grad), torch.set_grad_enabled(grad):
                    self.assert_same(ours, stock, draw())

    def test_samples_of_pytorch(self):
        from torch.testing._internal.common_methods_invocations import op_db

        ran = 0
        for op in op_db:
            if op.name.startswith("nn.functional.conv_transpose"):
                for sample in op.sample_inputs("cpu", torch.float64, requires_grad=False):
                    self.assert_close(ct.conv_transpose(sample.input, *sample.args, **sample.kwargs),
                                      op.op(sample.input, *sample.args, **sample.kwargs))
                    ran += 1
        self.assertGreater(ran, 15)

    def test_modules_of_pytorch(self):
        from torch.testing._internal.common_modules import module_db

        ran = 0
        for info in module_db:
            if info.module_cls not in CLASSES:
                continue
            for sample in info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=False):
                stock, ours = both(info.module_cls(*sample.constructor_input.args, dtype=torch.float64,
                                                   **sample.constructor_input.kwargs))
                given = sample.forward_input
                self.assert_close(ours(*given.args, **given.kwargs), stock(*given.args, **given.kwargs))
                ran += 1
        self.assertGreaterEqual(ran, 6)


class Weights(TorchTest):
    def check(self, stock, ours):
        self.assert_same(ours, stock, draw())

    def test_optimizer(self):
        stock, ours = both(layer())
        self.check(stock, ours)
        for module in (stock, ours):
            optimizer = torch.optim.SGD(module.parameters(), 0.1)
            for _ in range(3):
                optimizer.zero_grad()
                module(draw()).square().sum().backward()
                optimizer.step()
        self.check(stock, ours)

    def test_fused_optimizers(self):
        """Their kernels do not count changes. Each step follows a call in eval mode, which packs the weights."""
        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad):
            stock, ours = both(layer())
            optimizers = [kind(module.parameters(), 0.1, fused=True) for module in (stock, ours)]
            for _ in range(3):
                self.check(stock.eval(), ours.eval())
                for module, optimizer in zip((stock, ours), optimizers):
                    optimizer.zero_grad()
                    module.train()(draw()).square().sum().backward()
                    optimizer.step()
            self.check(stock.eval(), ours.eval())

    def test_a_compiled_step_of_a_fused_optimizer(self):
        stock, ours = both(layer())
        steps = []
        for module in (stock, ours):
            for parameter in module.parameters():
                parameter.grad = torch.ones_like(parameter)
            steps.append(torch.compile(torch.optim.SGD(module.parameters(), 0.1, fused=True).step, backend="aot_eager"))
        for _ in range(3):
            self.check(stock.eval(), ours.eval())
            for step in steps:
                step()
        self.check(stock.eval(), ours.eval())

    def test_parameters_are_swapped(self):
        """As torch.__future__ may have modules do, which no weak reference may prevent."""
        stock, ours = both(layer())
        compiled = torch.compile(ours, backend="aot_eager")
        with torch.no_grad():
            compiled(draw()), compiled(draw())
        torch.__future__.set_swap_module_params_on_conversion(True)
        self.addCleanup(torch.__future__.set_swap_module_params_on_conversion, False)
        for module in (stock, ours):
            module.load_state_dict({name: 2 * value for name, value in module.state_dict().items()})
        with torch.no_grad():
            self.assert_close(compiled(draw()), stock(draw()))
            compiled(draw())
            stock.double(), ours.double()
            self.assert_close(ours(draw(dtype=torch.float64)), stock(draw(dtype=torch.float64)))

    def test_load_state_dict(self):
        for assign in (False, True):
            stock, ours = both(layer())
            self.check(stock, ours)
            other = layer().state_dict()
            other = {name: 2 * value for name, value in other.items()}
            for module in (stock, ours):
                module.load_state_dict(copy.deepcopy(other), assign=assign)
            self.check(stock, ours)

    def test_changes(self):
        """Each of them is noticed by another sign."""
        x = draw()
        changes = (lambda m: m.weight.mul_(2), lambda m: m.bias.add_(1), lambda m: setattr(m, "bias", None),
                   lambda m: setattr(m.weight, "data", m.weight.data * 3), lambda m: setattr(m, "stride", (2, 2)),
                   lambda m: setattr(m, "weight", nn.Parameter(torch.ones_like(m.weight))))
        stock, ours = both(layer())
        for change in changes:
            with torch.no_grad():
                ours(x)
                change(stock), change(ours)
                self.assert_close(ours(x), stock(x))

    def test_repack(self):
        stock, ours = both(layer())
        with torch.inference_mode():
            before = ours(draw())
        for module in (stock, ours):
            module.weight.data.mul_(2)  # counts no change
        ct.repack_(ours)
        self.check(stock, ours)
        self.assertFalse(torch.equal(before, ours(draw())))

    def test_packed_once(self):
        _, ours = both(layer())
        with self.uses_plans as plans, torch.no_grad():
            for extent in (5, 6, 5, 6):
                ours(draw(extent=extent))
            self.assertEqual(plans.call_count, 1)
            ours.weight.mul_(2)
            ours(draw())
            self.assertEqual(plans.call_count, 2)

    def test_weights_made_in_inference_mode(self):
        with torch.inference_mode():
            stock, ours = layer(), layer()
            ct.replace_(ours)
            for factor in (1, 2):
                stock.weight.mul_(factor), ours.weight.mul_(factor)
                self.assert_close(ours(draw()), stock(draw()))

    def test_weights_that_are_a_part_of_a_vector(self):
        """PyTorch counts no writes to the vector as changes of them."""
        stock, ours = both(layer())
        vectors = [nn.utils.parameters_to_vector(module.parameters()).detach() for module in (stock, ours)]
        x, operator = draw(), torch.ops.convtranspose.conv_transpose
        with torch.no_grad():
            for _ in range(3):
                for module, vector in zip((stock, ours), vectors):
                    nn.utils.vector_to_parameters(vector, module.parameters())
                    vector.add_(1)
                for _ in range(3):
                    self.assert_close(ours(x), stock(x))
                    y = operator(x, ours.weight, ours.bias, [1, 1], [0, 0], [0, 0], 1, [1, 1], constant=True)
                    self.assert_close(y, stock(x))

    def test_weight_norm(self):
        for norm in (nn.utils.weight_norm, nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.spectral_norm):
            with self.subTest(norm=norm):
                stock = norm(layer()).eval()
                ours = norm(layer()).eval()
                ours.load_state_dict(stock.state_dict())
                report = ct.replace_(ours)
                self.assertIn("", report.replaced)
                self.assertEqual(list(ours.state_dict()), list(stock.state_dict()))
                self.check(stock, ours)
                with torch.no_grad():
                    for module in (stock, ours):
                        for parameter in module.parameters():
                            parameter.mul_(1.5)
                self.check(stock, ours)
                with self.uses_plans as plans, torch.no_grad():
                    ours(draw()), ours(draw())
                    self.assertEqual(plans.call_count, 0)
                ct.restore_(ours)
                self.check(stock, ours)

    def test_weight_norm_comes_and_goes(self):
        parametrize = nn.utils.parametrize
        stock, ours = both(layer())
        for module in (stock, ours):
            nn.utils.parametrizations.weight_norm(module)
        self.check(stock, ours)
        for module in (stock, ours):
            parametrize.remove_parametrizations(module, "weight")
        self.assertIs(type(ours), ct.ConvTranspose2d)
        self.check(stock, ours)
        replaced = nn.utils.parametrizations.weight_norm(layer())
        ct.replace_(replaced)
        parametrize.remove_parametrizations(replaced, "weight")
        self.assertIs(type(replaced), ct.ConvTranspose2d)
        removed = nn.utils.weight_norm(layer())
        ct.replace_(removed)
        nn.utils.remove_weight_norm(removed)
        self.check(layer(), removed)

    def test_pruned(self):
        stock, ours = (nn.utils.prune.l1_unstructured(layer(), "weight", 0.5) for _ in range(2))
        ct.replace_(ours)
        self.check(stock, ours)


class Modules(TorchTest):
    def test_report(self):
        class Other(nn.ConvTranspose2d):
            def forward(self, x):
                return x

        model = nn.Sequential(layer(1), nn.ReLU(), nn.Sequential(layer(2), Other(4, 6, 3)), nn.LazyConvTranspose2d(4, 3),
                              torch.jit.script(layer(2)))
        report = ct.replace_(model)
        self.assertEqual(sorted(report.replaced), ["0", "2.0"])
        self.assertEqual(sorted(report.left), ["2.1", "3", "4"])
        self.assertIn("class of its own", report.left["2.1"])
        self.assertIn("2.1: left, because", str(report))
        self.assertIn("by convtranspose", repr(model[0]))
        self.assertEqual(sorted(ct.restore_(model).replaced), ["0", "2.0"])
        self.assertIs(type(model[0]), nn.ConvTranspose1d)
        self.assertNotIn("_convtranspose", vars(model[0]))

    def test_options(self):
        model = nn.Sequential(layer(c=16, m=16))
        with self.assertRaisesRegex(TypeError, "there are threads, winograd"):
            ct.replace_(model, thread=1)
        with self.assertRaises((ValueError, NotImplementedError)):
            ct.replace_(model, isa="z80")
        self.assertIs(type(model[0]), nn.ConvTranspose2d)
        with self.assertRaisesRegex(TypeError, "measure is 5; it must be True or False"):
            ct.replace_(model, measure=5)
        ct.replace_(model, threads=1, isa="x86_64", measure=True)
        stock = copy.deepcopy(model)
        ct.restore_(stock)
        self.assert_same(model, stock, draw(c=16))

    def test_state_dict(self):
        stock, ours = both(nn.Sequential(layer(), layer(bias=False, c=6)))
        self.assertEqual(list(stock.state_dict()), list(ours.state_dict()))
        for name, value in ours.state_dict().items():
            self.assertTrue(torch.equal(value, stock.state_dict()[name]))
        self.assertEqual(stock.load_state_dict(ours.state_dict()), ours.load_state_dict(stock.state_dict()))

    def test_to_and_modes(self):
        stock, ours = both(layer(stride=2))
        for dtype in (torch.float64, torch.float32):
            stock.to(dtype), ours.to(dtype)
            self.assert_same(ours, stock, draw(dtype=dtype))
        self.assertTrue(ours.train().training and not ours.eval().training)
        with torch.device("meta"):
            self.assertEqual(ours.to("meta")(draw().to("meta")).shape, stock(draw()).shape)

    def test_copies(self):
        stock, ours = both(layer())
        with torch.no_grad():
            ours(draw())
        stream = io.BytesIO()
        torch.save(ours, stream)
        stream.seek(0)
        copies = [copy.deepcopy(ours), copy.copy(ours), pickle.loads(pickle.dumps(ours)), torch.load(stream, weights_only=False)]
        for made in copies:
            self.assertIs(type(made), ct.ConvTranspose2d)
            self.assert_same(made, stock, draw())
        with torch.no_grad():
            copies[0].weight.mul_(2)
            self.assertFalse(torch.equal(copies[0](draw()), ours(draw())))
        parametrized = copy.deepcopy(nn.utils.parametrizations.weight_norm(ours))
        self.assert_same(parametrized, stock, draw())
        with self.assertRaisesRegex(RuntimeError, "parametrized"):
            pickle.dumps(parametrized)

    def test_made_directly(self):
        stock, made = layer(), ct.ConvTranspose2d(4, 6, 3)
        made.load_state_dict(stock.state_dict())
        self.assert_same(made, stock, draw())

    def test_traced_by_fx(self):
        stock, ours = both(nn.Sequential(layer(), nn.ReLU()))
        self.assert_close(torch.fx.symbolic_trace(ours)(draw()).detach(), stock(draw()).detach())

    def test_hooks(self):
        _, ours = both(layer())
        seen = []
        ours.register_forward_hook(lambda module, args, y: seen.append(y.shape))
        ours(draw())
        self.assertEqual(len(seen), 1)

    def test_autocast(self):
        stock, ours = both(layer(c=16))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertEqual(ours(draw(c=16)).dtype, torch.bfloat16)
            self.assert_close(ours(draw(c=16)).detach(), stock(draw(c=16)).detach())
            with torch.no_grad():
                self.assert_close(ours(draw(c=16)), stock(draw(c=16)))
            for dtype in (torch.int32, torch.complex64):
                for context in (torch.no_grad(), torch.enable_grad()):
                    with self.subTest(dtype=dtype), context, self.assertRaises(RuntimeError):
                        ours(draw(c=16).to(dtype))
        self.assertEqual(ours(draw(c=16)).dtype, torch.float32)


class Operator(TorchTest):
    def arguments(self, axes=2, **attributes):
        made = layer(axes, dtype=torch.float64, **attributes)
        return made.weight, made.bias, made.stride, made.padding, made.output_padding, made.groups, made.dilation

    def test_opcheck(self):
        operator = torch.ops.convtranspose.conv_transpose.default
        for axes, x in ((1, draw(1, dtype=torch.float64)), (2, draw(2, dtype=torch.float64)[0]),
                        (2, draw(2, dtype=torch.float64).contiguous(memory_format=torch.channels_last)),
                        (3, draw(3, dtype=torch.float64))):
            with self.subTest(axes=axes, x=x.stride()):
                arguments = self.arguments(axes=axes, stride=2, padding=1, output_padding=1, groups=2)
                torch.library.opcheck(operator, (x.requires_grad_(), *arguments))
        torch.library.opcheck(operator, (x, *arguments, "leaky_relu", [0.25]))

    def test_gradcheck(self):
        for axes in (1, 2, 3):
            for attributes in ({"stride": 2, "padding": 1}, {"groups": 2}):
                for batched in (True, False):
                    w, b, *rest = self.arguments(axes=axes, **attributes)
                    x = draw(axes, extent=3, dtype=torch.float64)
                    x = (x if batched else x[0]).requires_grad_()
                    self.assertTrue(torch.autograd.gradcheck(
                        lambda x, w, b, rest=rest: torch.ops.convtranspose.conv_transpose(x, w, b, *rest), (x, w, b)))
        self.assertTrue(torch.autograd.gradgradcheck(
            lambda x, w, b: torch.ops.convtranspose.conv_transpose(x, w, b, *rest), (x, w, b)))

    def test_gradients_of_activations(self):
        stock = layer(1, dtype=torch.float64)
        x = draw(1, extent=3, dtype=torch.float64).requires_grad_()
        for activation in ("relu", "tanh", "sigmoid", ("leaky_relu", 0.25), ("clip", -0.5, 0.25)):
            with self.subTest(activation=activation):
                self.assertTrue(torch.autograd.gradcheck(
                    lambda x, w, b, a=activation: ct.conv_transpose(x, w, b, activation=a), (x, stock.weight, stock.bias)))
        # Whether a sum was negative does not show behind a negative slope.
        y = ct.conv_transpose(x, stock.weight, activation=("leaky_relu", -0.5))
        with self.assertRaisesRegex(RuntimeError, "slope -0.5, which is negative"):
            y.sum().backward()

    def test_changed_in_place(self):
        stock, ours = both(layer(stride=2))
        for x in (draw(), draw()[0], draw().contiguous(memory_format=torch.channels_last)):
            gradients = []
            for module in (stock, ours, lambda x: ct.conv_transpose(x, stock.weight, stock.bias, stride=2)):
                leaf = x.clone().requires_grad_()
                F.relu(module(leaf), inplace=True).square().sum().backward()
                gradients.append(leaf.grad)
            self.assert_close(gradients[1], gradients[0])
            self.assert_close(gradients[2], gradients[0])

    def test_gradcheck_of_a_module(self):
        _, ours = both(layer(1, dtype=torch.float64, stride=2))
        x = draw(1, extent=3, dtype=torch.float64).requires_grad_()

        def call(x, w, b):
            return torch.func.functional_call(ours, {"weight": w, "bias": b}, (x,))

        self.assertTrue(torch.autograd.gradcheck(call, (x, ours.weight, ours.bias)))
        self.assertTrue(torch.autograd.gradgradcheck(call, (x, ours.weight, ours.bias)))

    def test_gradients_are_those_of_pytorch(self):
        stock, ours = both(layer(stride=2, groups=2))
        for memory_format in (torch.contiguous_format, torch.channels_last):
            gradients = []
            for module in (stock, ours):
                module.zero_grad()
                x = draw().contiguous(memory_format=memory_format).requires_grad_()
                module(x).square().sum().backward()
                gradients.append([x.grad, module.weight.grad, module.bias.grad])
            for mine, theirs in zip(*gradients):
                self.assert_close(mine, theirs)

    def test_weights_are_packed_when_they_come_again(self):
        w, b, *rest = (t.detach() if isinstance(t, torch.Tensor) else t for t in self.arguments())
        x = draw(dtype=torch.float64)
        for _ in range(2):
            expected = F.conv_transpose2d(x, w, b)
            with self.uses_plans as plans:
                for _ in range(4):
                    self.assert_close(torch.ops.convtranspose.conv_transpose(x, w, b, *rest, constant=True), expected)
                self.assertLessEqual(plans.call_count, 2)  # one that takes weights with each call, and one that has them
            w.mul_(2)
            b.add_(1)

    def test_compile(self):
        stock, ours = both(nn.Sequential(layer(stride=2), nn.ReLU(), layer(c=6, m=2)))
        for dynamic in (False, True):
            torch._dynamo.reset()
            compiled = torch.compile(ours, fullgraph=True, dynamic=dynamic, backend="aot_eager")
            for extent in (5, 6):
                for x in (draw(extent=extent), draw(extent=extent).contiguous(memory_format=torch.channels_last)):
                    with torch.no_grad():
                        self.assert_close(compiled(x), stock(x))
        torch._dynamo.reset()
        x = draw().requires_grad_()
        torch.compile(ours, fullgraph=True, backend="aot_eager")(x).sum().backward()
        gradient = x.grad
        x.grad = None
        stock(x).sum().backward()
        self.assert_close(gradient, x.grad)

    def test_inductor(self):
        stock, ours = both(nn.Sequential(layer(stride=2), nn.ReLU()))
        torch._dynamo.reset()
        compiled = torch.compile(ours, fullgraph=True)
        for _ in range(3):
            with torch.no_grad():
                self.assert_close(compiled(draw()), stock(draw()))

    def test_export(self):
        stock, ours = both(nn.Sequential(layer(stride=2), nn.ReLU()))
        height = torch.export.Dim("height", min=2, max=64)
        for strict in (False, True):
            program = torch.export.export(ours.eval(), (draw(),), dynamic_shapes=({2: height},), strict=strict)
            self.assertIn("convtranspose.conv_transpose", str(program.graph))
            stream = io.BytesIO()
            torch.export.save(program, stream)
            stream.seek(0)
            loaded = torch.export.load(stream).module()
            for x in (draw(), torch.cat([draw()] * 2, 2)):
                self.assert_close(loaded(x).detach(), stock(x).detach())

    def test_jit_trace(self):
        stock, ours = both(nn.Sequential(layer(stride=2), nn.ReLU()))
        with torch.no_grad():
            traced = torch.jit.trace(ours.eval(), draw())
            self.assertIn("convtranspose::conv_transpose", str(traced.inlined_graph))
            stream = io.BytesIO()
            torch.jit.save(traced, stream)
            stream.seek(0)
            for x in (draw(), draw(extent=6)):
                self.assert_close(torch.jit.load(stream)(x), stock(x))
                stream.seek(0)

    def test_transforms(self):
        stock, ours = both(layer(stride=2))
        with self.assertRaisesRegex(RuntimeError, "functorch transforms"):  # the operator itself has no rule for it
            torch.func.grad(lambda x: ct.conv_transpose(x, stock.weight).sum())(draw())
        xs = torch.stack([draw(), 2 * draw(), draw() + 1])
        with torch.no_grad():
            for in_dims in (0, 1):
                self.assert_close(torch.vmap(ours, in_dims)(xs), torch.vmap(stock, in_dims)(xs))
            self.assert_close(torch.vmap(ours)(xs[:, 0]), torch.vmap(stock)(xs[:, 0]))
        weights = torch.stack([stock.weight.detach(), 2 * stock.weight.detach()])
        made = torch.vmap(lambda w: ct.conv_transpose(xs[0], w, stride=2))(weights)
        self.assert_close(made, torch.stack([F.conv_transpose2d(xs[0], w, stride=2) for w in weights]))

        def energy(module):
            return lambda x: module(x).square().sum()

        self.assert_close(torch.func.grad(energy(ours))(draw()), torch.func.grad(energy(stock))(draw()))
        with torch.no_grad():
            tangents = [torch.func.jvp(module, (draw(),), (draw(),))[1] for module in (ours, stock)]
        self.assert_close(*tangents)
        per_sample = [torch.vmap(torch.func.grad(energy(module)))(draw()) for module in (ours, stock)]
        self.assert_close(*per_sample)

    def test_threads(self):
        _, ours = both(layer(c=16, m=16))
        results = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with torch.no_grad(), self.uses_plans as plans:
                results.append(ours(draw(c=16)))
                self.assertEqual(plans.call_args.kwargs["threads"], threads)
        self.assertTrue(torch.equal(*results))
        ct.replace_(ours, threads=1)
        with torch.no_grad(), self.uses_plans as plans:
            ours(draw(c=16))
            self.assertEqual(plans.call_args.kwargs["threads"], 1)

    def test_calls_from_threads(self):
        stock, ours = both(layer(c=16, m=16))
        with torch.no_grad():
            expected = [stock(draw(c=16, extent=4 + i)) for i in range(3)]
        wrong = []

        def call(i):
            with torch.no_grad():
                for _ in range(50):
                    if not torch.allclose(ours(draw_of[i]), expected[i], atol=1e-5):
                        wrong.append(i)

        draw_of = [draw(c=16, extent=4 + i) for i in range(3)]
        threads = [threading.Thread(target=call, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Upsampled:
    """A data set whose samples are computed by a layer in the worker."""

    def __init__(self, module):
        self.module = module

    def __len__(self):
        return 6

    def __getitem__(self, index):
        with torch.no_grad():
            return self.module(torch.full((4, 5, 6), float(index)))


class Processes(TorchTest):
    def test_data_loader(self):
        torch.set_num_threads(2)
        stock, ours = both(layer())
        with torch.no_grad():
            ours(draw())  # the parent's threads are there when it forks
        for context in ("fork", "spawn"):
            loader = torch.utils.data.DataLoader(Upsampled(ours), batch_size=3, num_workers=2, multiprocessing_context=context)
            with torch.no_grad():
                expected = torch.stack([stock(torch.full((4, 5, 6), float(i))) for i in range(6)])
            self.assert_close(torch.cat(list(loader)), expected)

    def test_fork(self):
        torch.set_num_threads(2)
        _, ours = both(layer(c=16, m=16))
        with torch.no_grad():
            expected = ours(draw(c=16))
            child = os.fork()
            if child == 0:
                os._exit(0 if torch.equal(ours(draw(c=16)), expected) else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_no_growth(self):
        torch.set_num_threads(1)
        module = layer(1)
        ct.replace_(module)
        x = [draw(1, n=1, extent=extent) for extent in range(4, 16)]  # more shapes than plans are kept for
        normed = nn.utils.parametrizations.weight_norm(layer(1))
        ct.replace_(normed)
        constants = [p.detach() for p in (module.weight, module.bias)]

        def calls(count):
            with torch.inference_mode():
                for _ in range(count):
                    module(x[0])
                for i in range(count // 20):
                    module(x[i % len(x)])
                    normed(x[0])
                    ct.conv_transpose(x[i % len(x)], *constants, constant=True)
                    ct.conv_transpose(x[0], constants[0].clone(), constant=True)
            for _ in range(count // 50):
                module(x[0]).sum().backward()
            gc.collect()

        calls(20000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        calls(100000)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 4096)  # KiB


if __name__ == "__main__":
    unittest.main()
