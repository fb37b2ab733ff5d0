"""fuse_() of convtranspose.torch, where PyTorch is installed."""

import copy
import functools
import pickle
import unittest

from test_torch_module import HAS_TORCH, TorchTest, draw, layer

if HAS_TORCH:
    import convtranspose.torch as ct
    import torch
    import torch.nn.functional as F
    import torch.nn.utils.prune
    from test_torch_module import NORMS
    from torch import nn

    class Reads(nn.Module):
        """Reads weights besides: read(model) is added to what the two layers compute."""

        def __init__(self, read):
            super().__init__()
            self.up, self.bn, self.read = layer(), Fusion.norm(2), read

        def forward(self, x):
            return self.bn(self.up(x)).to(next(self.parameters()).device) + self.read(self)


class Fusion(TorchTest):
    def check(self, model, fused, left=(), x=None, ops=()):
        model.eval()
        x = draw() if x is None else x
        with torch.no_grad():
            expected = model(x)
            report = ct.fuse_(model)
            self.assertEqual((sorted(report.replaced), sorted(report.left)), (sorted(fused), sorted(left)), str(report))
            self.assert_close(model(x), expected)
        return report

    @staticmethod
    def norm(axes, m=6):
        norm = NORMS[axes - 1](m)
        for tensor in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            nn.init.uniform_(tensor, 0.5, 2)
        return norm

    def test_norm_and_activation(self):
        activations = (nn.ReLU(True), nn.LeakyReLU(0.2), nn.Tanh(), nn.Sigmoid(), nn.Hardtanh(-0.5, 0.25), nn.ReLU6())
        for axes in (1, 2, 3):
            for activation in activations:
                for attributes in ({"groups": 2}, {"bias": False}):
                    model = nn.Sequential(layer(axes, stride=2, **attributes), self.norm(axes), activation, nn.Dropout())
                    report = self.check(model, ["0"], x=draw(axes))
                    self.assertIn("BatchNorm", report.replaced["0"])
                    self.assertEqual([type(m) for m in model[1:3]], [nn.Identity] * 2)
                    self.assertIn("activation=", repr(model[0]))
                    self.assertIn("0", ct.restore_(model).left)
                    copied = pickle.loads(pickle.dumps(model))
                    with torch.no_grad():
                        self.assertTrue(torch.equal(copied(draw(axes)), model(draw(axes))))

    def test_what_is_left(self):
        for followers, words in (((self.norm(2).train(), nn.ReLU()), "eval"), ((nn.LeakyReLU(-1.0),), "slope"),
                                 ((nn.Softmax(1),), "Softmax"), ((nn.BatchNorm2d(6, track_running_stats=False),), "statistics")):
            model = nn.Sequential(layer(), *followers)
            report = ct.fuse_(model)
            self.assertIn(words, report.left["0"])
            self.assertIs(type(model[1]), type(followers[0]))
        model = nn.Sequential(layer(), nn.ReLU(), self.norm(2))
        self.check(model, ["0"])
        self.assertIs(type(model[2]), nn.BatchNorm2d)
        half = nn.Sequential(layer(), self.norm(2)).to(torch.bfloat16).eval()
        self.assertIn("bfloat16", ct.fuse_(half).left["0"])
        exact, rounded = nn.LeakyReLU(0.25), nn.LeakyReLU(0.1)
        self.check(nn.Sequential(layer(), exact).double(), ["0"], x=draw().double())
        report = self.check(nn.Sequential(layer(), rounded).double(), [], ["0"], x=draw().double())
        self.assertIn("does not hold (0.1,)", report.left["0"])
        self.check(nn.Sequential(layer(), rounded), ["0"])
        self.check(nn.Sequential(nn.utils.weight_norm(layer()), nn.ReLU()), ["0"])
        self.check(nn.Sequential(nn.utils.weight_norm(layer()), self.norm(2)), [], ["0"])

    def test_other_readers(self):
        class TwoReaders(nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.act = layer(), nn.ReLU()

            def forward(self, x):
                y = self.up(x)
                return self.act(y) + y

        class CalledTwice(TwoReaders):
            def forward(self, x):
                return self.act(self.up(x)) + self.up(x)

        class Optional(TwoReaders):
            def forward(self, x, raw=None):
                y = self.up(x)
                return self.act(y) if raw is not None else y

        class Shared(TwoReaders):
            def forward(self, x):
                return self.act(self.act(self.up(x)) - 1)

        class Output(TwoReaders):
            def forward(self, x):
                y = self.up(x)
                return torch.cat([self.act(y).flatten(), y.flatten()])

        for kind in (TwoReaders, CalledTwice, Optional, Shared, Output):
            with self.subTest(kind=kind.__name__):
                self.check(kind(), [], ["up"])
        hooked = nn.Sequential(layer(), nn.ReLU())
        hooked[0].register_forward_hook(lambda module, args, y: None)
        self.check(hooked, [], ["0"])
        contained = nn.Sequential(nn.Sequential(layer()), nn.ReLU())
        contained[0].register_forward_hook(lambda module, args, y: None)
        self.check(contained, [], ["0.0"])
        container = nn.Sequential(layer(), nn.Sequential(nn.ReLU()))
        container[1].register_forward_pre_hook(lambda module, args: None)
        self.check(container, [], ["0"])
        tapped = nn.Sequential(layer(), nn.Identity(), nn.ReLU())
        tapped[1].register_forward_hook(lambda module, args, y: y + 1)
        self.check(tapped, [], ["0"])
        relu = nn.ReLU()
        self.check(nn.Sequential(layer(), relu, nn.Sequential(nn.Conv2d(6, 6, 1), relu)), [], ["0"])

    def test_attributes_stay_as_they_were(self):
        """A trace runs forward."""
        class Remembers(nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.bn, self.calls, self.last = layer(), Fusion.norm(2), 0, None

            def forward(self, x, scale=None):
                self.calls += 1
                self.last = self.new = self.bn(self.up(x * torch.tensor(2.0)))
                return self.last if scale is None else self.last * scale

        model = Remembers().eval()
        before = model.__dict__.copy()
        self.assertIn("up", ct.fuse_(model).replaced)
        self.assertEqual(vars(model), before)
        self.check(Remembers(), ["up"])

    def test_weights_that_are_read_besides(self):
        for name, read in (("up.weight", lambda m: m.up.weight.sum()), ("up.bias", lambda m: m.up.bias.sum()),
                           ("bn.weight", lambda m: m.bn.weight.sum())):
            report = self.check(Reads(read), [], ["up"])
            self.assertIn(f"{name} is read besides", report.left["up"])

    def test_weights_that_a_trace_computes_with(self):
        for name, read in {"parameters": lambda model: sum(p.sum() for p in model.parameters()),
                           "state_dict": lambda model: model.state_dict()["bn.running_mean"].sum()}.items():
            with self.subTest(name):
                self.check(Reads(read), [], ["up"])
        self.check(Reads(lambda model: 1), ["up"])

    def test_untraceable(self):
        class Branches(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = nn.Sequential(layer(), nn.ReLU())
                self.up, self.act = layer(c=6), nn.ReLU()

            def forward(self, x):
                if x.sum() > 1e9:
                    return x
                return self.act(self.up(self.block(x)))

        report = self.check(Branches(), ["block.0"], ["up"])
        self.assertIn("cannot trace", report.left["up"])

    def test_a_container_in_several_places_of_what_cannot_be_traced(self):
        shared, last = nn.Sequential(layer()), nn.Sequential(nn.ReLU())

        class Branches(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Sequential(shared, nn.BatchNorm2d(6))
                self.b = nn.Sequential(shared, nn.BatchNorm2d(6))
                self.c, self.d = nn.Sequential(layer(), last), nn.Sequential(nn.Conv2d(6, 6, 1), last)

            def forward(self, x):
                return self.d(self.c(x)) + (self.a(x) if x.sum() > 0 else self.b(x))

        model = Branches()
        with torch.no_grad():
            for norm in (model.a[1], model.b[1]):
                norm.running_mean.uniform_(-3, 3)
        report = self.check(model, [], ["a.0.0", "b.0.0", "c.0"])
        self.assertIn("several places", report.left["a.0.0"])

    def test_functions(self):
        class Functions(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c, self.d, self.e = layer(m=4), layer(m=4), layer(m=4), layer(m=4), layer(m=4)

            def forward(self, x):
                x = F.leaky_relu(self.b(F.relu(self.a(x))), negative_slope=0.3)
                x = self.d(torch.clamp(self.c(x), min=-1.0, max=0.5)).tanh()
                return F.relu6(self.e(x)).mul(2)

        report = self.check(Functions(), [], list("abcde"))
        self.assertIn("symbolic_trace", report.left["a"])
        traced = torch.fx.symbolic_trace(Functions())
        self.check(traced, list("abcde"))
        self.assertEqual([node.target for node in traced.graph.nodes if node.op == "call_function"], [])

    def test_training_of_what_is_fused(self):
        model = nn.Sequential(layer(), nn.LeakyReLU(0.1)).eval()
        stock = copy.deepcopy(model)
        ct.fuse_(model)
        for module in (stock, model):
            module(draw()).square().sum().backward()
        self.assert_close(model[0].weight.grad, stock[0].weight.grad)
        torch._dynamo.reset()
        with torch.no_grad():
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
            self.assert_close(compiled(draw()), stock(draw()))

    def test_walked_children_of_what_cannot_be_traced(self):
        """Code that does not only call a child sees what lies between its layers."""

        class Branches(nn.Module):
            def __init__(self, calls):
                super().__init__()
                self.block, self.calls = nn.Sequential(layer(m=4), nn.ReLU(), layer(m=4), nn.Tanh()), calls

            def forward(self, x):
                return self.calls(self, -x if x.sum() > 1e9 else x)

        class Walks(Branches):
            def forward(self, x):
                ys = []
                for part in self.block:
                    x = part(-x if x.sum() > 1e9 else x)
                    ys.append(x.sum((1, 2, 3)))
                return torch.stack(ys)

        class Early(Walks):
            def forward(self, x, early=True):
                return self.block[0](x) if early or x.sum() > 1e9 else self.block(x)

        class Alias(Walks):
            def forward(self, x):
                first, *rest = self.block
                y = first(-x if x.sum() > 1e9 else x)
                return y + nn.Sequential(*rest)(y).sum()

        class Names(Walks):
            def forward(self, x):
                for _, part in self.block.named_children():
                    x = part(-x if x.sum() > 1e9 else x)
                return x

        class ByAMethod(Walks):
            def forward(self, x):
                return self.run(x) if x.sum() > 1e9 else self.run(x) + 1

            def run(self, x):
                return self.block[2](self.block[0](x))

        for model in (Branches(lambda m, x: m.block[0](x)), Walks(None), Early(None), Alias(None), Names(None), ByAMethod(None)):
            report = self.check(model, [], ["block.0", "block.2"])
            self.assertIn("other ways", report.left["block.0"])

    def test_ways_around_the_names_of_children(self):
        """Code calls up[0] alone, or reads its weights, by other means than self.up."""
        class Up(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Sequential(layer(m=4, padding=1), Fusion.norm(2, 4), nn.ReLU())

            def alone(self, x):
                return self.up[0](x)

            def forward(self, x):
                return self.up(x) if x.sum() < 99 else x

        def alone(module, x):
            return module.up[0](x) if x.sum() < 99 else module.up(x)

        class Renamed(Up):
            def forward(this, x):
                return this.up[0](x) if x.sum() < 99 else this.up(x)

        class Inherited(Up):
            def forward(self, x):
                return super().alone(x) if x.sum() < 99 else self.up(x)

        class Mixin:
            def other(self, x):
                return self.up[0](x)

        class Mixed(Up, Mixin):
            def forward(self, x):
                return self.other(x) if x.sum() < 99 else self.up(x)

        class Assigned(Up):
            forward = alone

        class Hidden(Up):
            def __init__(self, hide):
                super().__init__()
                self.hidden = hide(self)

            def forward(self, x):
                return self.hidden[0](x) if x.sum() < 99 else self.up(x)

        class Dictionary(Up):
            def forward(self, x):
                return self.__dict__["_modules"]["up"][0](x) if x.sum() < 99 else self.up(x)

        class Read(Up):
            def forward(self, x):
                return self.up(x) + sum(p.sum() for p in self.parameters()) if x.sum() < 99 else x

        hidden = [Hidden(hide) for hide in (
            lambda module: [module.up[0]], lambda module: [module.alone], lambda module: [functools.partial(alone, module)],
            lambda module: [lambda x: module.up[0](x) + 0])]
        for model in (Renamed(), Inherited(), Mixed(), Assigned(), *hidden, Dictionary(), Read()):
            with self.subTest(type(model).__name__):
                self.check(model, [], ["up.0"])

        class Ordinary(Up):
            def __init__(self):
                super().__init__()
                self.act, self.steps = F.relu, {"twice": [self.twice]}

            @property
            def device(self):
                return next(self.parameters()).device

            @staticmethod
            def twice(x):
                return 2 * x

            def forward(self, x):
                return self.steps["twice"][0](self.act(super().forward(x.to(self.device))))

        self.check(Ordinary(), ["up.0"])

    def test_lists_of_what_cannot_be_traced(self):
        class Called(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList(nn.Sequential(layer(m=4), nn.ReLU()) for _ in range(2))
                self.scales = [1.0, 2.0]

            def forward(self, x):
                for i, block in enumerate(self.blocks):
                    x = block(-x if x.sum() > 1e9 else x) * self.scales[i]
                return x

        class Zipped(Called):
            def forward(self, x):
                for scale, block in zip(self.scales, self.blocks):
                    x = block(-x if x.sum() > 1e9 else x) * scale
                return self.blocks[0](x)

        class Walked(Called):
            def forward(self, x):
                for block in self.blocks:
                    x = block[0](-x if x.sum() > 1e9 else x)
                return x

        self.check(Called(), ["blocks.0.0", "blocks.1.0"])
        self.check(Zipped(), ["blocks.0.0", "blocks.1.0"])
        self.check(Walked(), [], ["blocks.0.0", "blocks.1.0"])

    def test_computed_biases(self):
        class Double(nn.Module):
            def forward(self, x):
                return 2 * x

        parametrized = nn.Sequential(layer(), self.norm(2))
        nn.utils.parametrize.register_parametrization(parametrized[0], "bias", Double())
        pruned = nn.Sequential(layer(), self.norm(2))
        nn.utils.prune.random_unstructured(pruned[0], "bias", 0.5)
        for model in (parametrized, pruned):
            report = self.check(model, [], ["0"])
            self.assertIn("computed at each call", report.left["0"])


if __name__ == "__main__":
    unittest.main()
