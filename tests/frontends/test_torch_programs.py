"""`ow.from_torch` on whole programs, against eager PyTorch: modules, files, dynamic shapes, buffers, custom operators.

Lives here: what needs torch. Not here: rules (test_aten_rules.py), architectures (torch_survey.py).
"""

from __future__ import annotations

import importlib
import json
import zipfile

import numpy as np
import pytest

import opwright as ow
from opwright.frontends.missing_operators import MissingOperators, Required
from opwright.frontends.torch.decomposition import is_functional
from opwright.graph.passes.layout import assign_layouts, transposes
from opwright.ops import registry

torch = pytest.importorskip("torch")
nn = torch.nn
while_loop, scan, torch_map = (getattr(torch._higher_order_ops, n) for n in ("while_loop", "scan", "map"))


def images(*shape):
    generator = torch.Generator().manual_seed(24)
    return torch.randn(*shape, generator=generator)


class Net(nn.Module):
    """A small network of images with a branch, channels-first."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.pointwise = nn.Conv2d(8, 8, 1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.pointwise(torch.nn.functional.hardswish(self.depthwise(x)))
        return self.head(self.pool(x).mean((2, 3)))


def close(actual, expected, limit=1e-5):
    a, b = np.asarray(actual), expected.detach().numpy()
    assert a.shape == b.shape
    assert np.abs(a - b).max() <= limit * max(np.abs(b).max(), 1e-6)


def test_a_module_runs_converts_and_keeps_one_transpose():
    net, x = Net().eval(), images(2, 3, 17, 16)
    function = ow.from_torch(net, (x,))
    expected = net(x)
    close(function(x.numpy()), expected)
    graph = function.concrete().optimized_graph
    assert len(transposes(assign_layouts(graph, registry.get)[0])) == 1  # of the input
    assert any(node.name.startswith("stem.0/") for node in graph.nodes)
    data = ow.lite.TFLiteConverter.from_concrete_functions([function.concrete()]).convert()
    interpreter = ow.lite.Interpreter(model_content=data)
    (result,) = interpreter.get_signature_runner()(**{function.parameters[0]: x.numpy()}).values()
    close(result, expected)


def test_images_channels_last():
    net, x = Net().eval(), images(1, 3, 16, 16)
    function = ow.from_torch(net, (x,), input_layout="nhwc")
    close(function(x.numpy().transpose(0, 2, 3, 1)), net(x))
    assert not transposes(assign_layouts(function.concrete().optimized_graph, registry.get)[0])
    function = ow.from_torch(net.stem, (x,), input_layout="nhwc", output_layout="nhwc")
    close(function(x.numpy().transpose(0, 2, 3, 1)), net.stem(x).permute(0, 2, 3, 1))
    assert not transposes(assign_layouts(function.concrete().optimized_graph, registry.get)[0])


def test_parameters_are_variables_on_the_module_memory():
    net = Net().eval()
    function = ow.from_torch(net, (images(1, 3, 16, 16),))
    names = {v.name: v for v in function.variables}
    weight = names["head.weight:0"]
    assert np.shares_memory(weight.read_array(), net.head.weight.detach().numpy())
    assert {v.name for v in function.trainable_variables} == {f"{n}:0" for n, _ in net.named_parameters()}
    x, target = images(4, 3, 16, 16), torch.tensor([0, 1, 2, 3])
    torch.nn.functional.cross_entropy(net(x), target).backward()
    function = ow.from_torch(net, (x,))
    with ow.GradientTape() as tape:
        logits = function(x.numpy())
        losses = ow.nn.sparse_softmax_cross_entropy_with_logits(labels=target.numpy(), logits=logits)
        loss = ow.reduce_mean(losses)
    variables = function.trainable_variables
    gradients = dict(zip((v.name[:-2] for v in variables), tape.gradient(loss, variables)))
    for name, parameter in net.named_parameters():
        close(gradients[name].numpy(), parameter.grad, 1e-4)


def test_training_mode_updates_running_statistics():
    net, x = nn.BatchNorm2d(3).train(), images(4, 3, 5, 5)
    function = ow.from_torch(net, (x,))
    expected = net(x)  # updates the module's buffers
    before = {n: b.clone() for n, b in nn.BatchNorm2d(3).named_buffers()}
    for variable in function.variables:
        if variable.name[:-2] in before:
            variable.assign(before[variable.name[:-2]].numpy())
    close(function(x.numpy()), expected)
    values = {v.name[:-2]: v.numpy() for v in function.variables}
    close(values["running_mean"], net.running_mean)
    close(values["running_var"], net.running_var)


def changes_a_result(x):
    y = x * 2
    return y.relu_().add_(1) + 1


def reads_a_view_of_a_changed_tensor(x):
    y = x * 2
    row = y[:, 0]
    y.add_(1)
    return row


def changes_through_a_view(x):
    y = x * 2
    y.view(-1).mul_(3)
    return y


def changes_behind_a_reshape(x):
    y = x + 1
    z = y.reshape(4, 3)
    y.relu_()
    return z


def changes_a_part(x):
    y = torch.zeros_like(x)
    y[:, 1:] = x[:, :-1]
    return y


def changes_its_input(x):
    x.mul_(2)
    return x + 1


def changes_twice_and_reads_both(x):
    y = x + 1
    z = y.mul_(2)
    z.sub_(5)
    return y * z


class Calling(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "as_it_is"),
    [
        (changes_a_result, True),
        (reads_a_view_of_a_changed_tensor, False),
        (changes_through_a_view, False),
        (changes_behind_a_reshape, False),
        (changes_a_part, False),
        (changes_its_input, False),
        (changes_twice_and_reads_both, True),
    ],
)
def test_changes_in_place(function, as_it_is):
    x = images(3, 4)
    program = torch.export.export(Calling(function), (x,), strict=False)
    assert is_functional(program) == as_it_is  # else PyTorch makes it functional, which takes long
    close(ow.from_torch(program)(x.numpy()), function(x.clone()))


class Cache(nn.Module):
    """A cache of rows that each call extends."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.rows.index_copy_(0, self.count.reshape(1), x)
        self.count.add_(1)
        return self.rows.sum(0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: nn.functional.pad(x, (-1, 1, -2, 1), "circular"),
        lambda x: nn.functional.pad(x, (2, -2, -1, 1), "reflect"),
        lambda x: nn.functional.pad(x[0], (2, -3), "replicate"),
        lambda x: torch.einsum("...k, ...k ->", x, x[0, 0]),  # adds up dimensions that the result does not name
        lambda x: nn.functional.dropout(x, 1.0, training=True),  # drops all, at no random place
    ],
)
def test_rare_arguments(function):
    class Called(nn.Module):
        def forward(self, x):
            return function(x)

    x = torch.arange(20.0).reshape(1, 1, 4, 5)
    np.testing.assert_array_equal(ow.from_torch(Called(), (x,))(x.numpy()).numpy(), function(x).numpy())


@pytest.mark.parametrize("jit_compile", [False, True])
def test_norms_and_deviations_of_zeros_have_a_gradient(jit_compile):
    """Test rows that are 0 and rows whose elements are equal: PyTorch's gradients of their roots are 0."""

    class Norms(nn.Module):
        def forward(self, x):
            rows = nn.functional.normalize(x, dim=1) + torch.std(x, 1, keepdim=True)
            return rows + torch.linalg.vector_norm(x, dim=1, keepdim=True), torch.cdist(x, x[1:3])

    x = images(4, 6)
    x[1], x[2] = 0, 3
    x.requires_grad_(True)
    rows, distances = Norms()(x)
    (rows.square().sum() + distances.sum()).backward()
    module = ow.from_torch(torch.export.export(Norms(), (x.detach(),)))

    @ow.function(jit_compile=jit_compile)
    def gradient(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            rows, distances = module(x)
            loss = ow.reduce_sum(ow.square(rows)) + ow.reduce_sum(distances)
        return tape.gradient(loss, x)

    result = gradient(ow.constant(x.detach().numpy()))
    np.testing.assert_allclose(result, x.grad.numpy(), rtol=1e-5, atol=1e-5 * float(x.grad.abs().max()))


def test_buffers_are_state():
    cache, x = Cache(), images(1, 3)
    function = ow.from_torch(Cache(), (x,))
    for step in range(3):
        close(function((x * (step + 1)).numpy()), cache(x * (step + 1)))


class Layer:
    """A cache that is no module, as those of transformers."""

    def __init__(self, rows):
        self.rows, self.length = rows, torch.zeros((), dtype=torch.int64)

    def extend(self, x):
        self.rows.index_copy_(0, self.length.reshape(1), x)
        self.length.add_(1)
        return self.rows


class Held(nn.Module):
    """A module whose buffers have the memory of such a cache; it reads the cache."""

    def __init__(self):
        super().__init__()
        self.layer = Layer(torch.zeros(4, 3))
        self.register_buffer("rows", self.layer.rows, persistent=False)
        self.register_buffer("length", self.layer.length, persistent=False)

    def forward(self, x, position):
        self.layer.length.copy_(position[0])
        return self.layer.extend(x).cumsum(0)


def test_caches_outside_of_modules():
    held = Held()
    with torch.no_grad():
        function = ow.from_torch(Held(), (images(1, 3), torch.tensor([0])))
        for step in (0, 1, 3):
            x = images(1, 3) * (step + 1)
            close(function(x.numpy(), np.array([step])), held(x, torch.tensor([step])))


def test_unknown_sizes():
    net = Net().eval()
    batch = torch.export.Dim("batch", min=2, max=64)
    function = ow.from_torch(net, (images(2, 3, 16, 16),), dynamic_shapes={"x": {0: batch}})
    assert function.input_signature[0].shape.as_list() == [None, 3, 16, 16]
    for n in (2, 5):
        x = images(n, 3, 16, 16)
        close(function(x.numpy()), net(x))


def test_files(tmp_path):
    net, x = Net().eval(), images(1, 3, 16, 16)
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(net, (x,)), path)
    close(ow.from_torch(path)(x.numpy()), net(x))
    path.write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"no program of torch\.export"):
        ow.from_torch(path)
    with pytest.raises(ow.errors.InvalidArgumentError, match="no such file"):
        ow.from_torch(tmp_path / "absent.pt2")


def test_structures_of_results():
    class Several(nn.Module):
        def forward(self, x, *, scale):
            return {"a": x * scale, "b": (x + 1, [x.sum()])}

    x, scale = images(2, 3), images(3)
    function = ow.from_torch(Several(), (x,), {"scale": scale})
    result = function(x.numpy(), scale.numpy())
    expected = Several()(x, scale=scale)
    close(result["a"], expected["a"])
    close(result["b"][1][0], expected["b"][1][0])


class Steps(nn.Module):
    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t - 1, (x,))
        _count, y = while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * 1.5), (torch.tensor(0), y))
        return y


def test_control_flow():
    x = images(2, 3)
    function = ow.from_torch(Steps(), (x,))
    for value in (x.abs(), -x.abs()):
        close(function(value.numpy()), Steps()(value))


class Quantized(nn.Module):
    """A convolution and a product as pt2e writes them: integers by channel, pairs around each operator."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(24)
        for name, shape in (("kernel", (6, 3, 3, 3)), ("weight", (5, 6))):
            integers = torch.randint(-127, 128, shape, generator=generator, dtype=torch.int8)
            self.register_buffer(name, integers)
            self.register_buffer(f"{name}_scales", torch.rand(shape[0], generator=generator) * 0.01 + 0.001)
            self.register_buffer(f"{name}_zeros", torch.zeros(shape[0], dtype=torch.int64))
            self.register_buffer(f"{name}_bias", torch.randn(shape[0], generator=generator))

    def weights(self, name):
        values = (getattr(self, name + suffix) for suffix in ("", "_scales", "_zeros"))
        return torch.ops.quantized_decomposed.dequantize_per_channel(*values, 0, -127, 127, torch.int8)

    def forward(self, x):
        def pair(x, *parameters):
            q = torch.ops.quantized_decomposed.quantize_per_tensor(x, *parameters, -128, 127, torch.int8)
            return torch.ops.quantized_decomposed.dequantize_per_tensor(q, *parameters, -128, 127, torch.int8)

        x = pair(x, 0.03, 3)
        x = pair(torch.relu(nn.functional.conv2d(x, self.weights("kernel"), self.kernel_bias, padding=1)), 0.04, -128)
        x = nn.functional.max_pool2d(pair(x + x, 0.08, -120), 3, 2, 1)  # pads with -inf
        x = pair(x, 0.08, -120)
        x = nn.functional.linear(x.amax((2, 3)), self.weights("weight"), self.weight_bias)
        return pair(x, 0.05, 7)


def test_pairs_of_pt2e_become_quantized_tensors():
    importlib.import_module("torch.ao.quantization.fx._decomposed")  # defines the operators
    module, x = Quantized(), images(2, 3, 8, 8)
    function = ow.from_torch(module, (x,))
    expected = module(x)
    close(function(x.numpy()), expected)
    data = ow.lite.TFLiteConverter.from_concrete_functions([function.concrete()]).convert()
    official = pytest.importorskip("ai_edge_litert.interpreter")
    resolver = official.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    for interpreter in (
        ow.lite.Interpreter(model_content=data),
        official.Interpreter(model_content=data, experimental_op_resolver_type=resolver),
    ):
        (result,) = interpreter.get_signature_runner()(**{function.parameters[0]: x.numpy()}).values()
        assert np.abs(result - expected.numpy()).max() <= 0.05 * 1.001  # a step
    kinds = [d["dtype"] for d in interpreter.get_tensor_details()]
    assert kinds.count(np.float32) == 2  # the input and the result
    assert kinds.count(np.int8) > 6


VISION = torch.library.Library("torchvision", "FRAGMENT")
if not hasattr(torch.ops.torchvision, "nms"):  # torchvision is not installed: its schemas suffice for export
    VISION.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    VISION.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
        "int sampling_ratio, bool aligned) -> Tensor"
    )

    @torch.library.register_fake("torchvision::nms", lib=VISION)
    def _(dets, scores, iou_threshold):
        return dets.new_empty([torch.library.get_ctx().new_dynamic_size()], dtype=torch.int64)

    @torch.library.register_fake("torchvision::roi_align", lib=VISION)
    def _(x, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
        return x.new_empty(rois.size(0), x.size(1), pooled_height, pooled_width)


class Detections(nn.Module):
    """Boxes above a score that remain after suppression, and their regions of an image."""

    def forward(self, x, boxes, scores):
        above = scores > 0.2
        boxes, scores = boxes[above], scores[above]
        kept = torch.ops.torchvision.nms(boxes, scores, 0.5)
        boxes = boxes[kept]
        rois = torch.cat([torch.zeros_like(boxes[:, :1]), boxes], 1)
        return boxes, scores[kept], torch.ops.torchvision.roi_align(x, rois, 0.25, 3, 2, 2, False)


def suppressed(boxes, scores, threshold):
    """Greedy suppression in float64."""
    order, kept = np.argsort(-scores, kind="stable").tolist(), []
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    while order:
        best = order.pop(0)
        kept.append(best)
        sides = np.minimum(boxes[best, 2:], boxes[order, 2:]) - np.maximum(boxes[best, :2], boxes[order, :2])
        shared = sides.clip(0).prod(1)
        overlap = shared / (areas[best] + areas[order] - shared)
        order = [o for o, part in zip(order, overlap) if part <= threshold]
    return kept


def sampled(image, y, x):
    """Return the bilinear sample [c] of an image [c, h, w]; zeros outside of it."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    i, j = int(y), int(x)
    below, right = min(i + 1, height - 1), min(j + 1, width - 1)
    upper = image[:, i, j] * (1 - x + j) + image[:, i, right] * (x - j)
    return upper * (1 - y + i) + (image[:, below, j] * (1 - x + j) + image[:, below, right] * (x - j)) * (y - i)


def test_detections():
    generator = np.random.default_rng(24)
    corners = generator.uniform(0, 25, (40, 2))
    boxes = np.concatenate([corners, corners + generator.uniform(8, 30, (40, 2))], 1).astype(np.float32)
    scores = generator.permutation(40).astype(np.float32) / 40
    x = generator.standard_normal((1, 3, 16, 15)).astype(np.float32)
    function = ow.from_torch(Detections(), tuple(map(torch.from_numpy, (x, boxes, scores))))
    kept = [i for i in suppressed(boxes.astype(np.float64), np.where(scores > 0.2, scores, -1), 0.5) if scores[i] > 0.2]
    assert 3 < len(kept) < 30
    regions = np.zeros((len(kept), 3, 3, 2))
    for k, (left, top, right, bottom) in enumerate(boxes[kept].astype(np.float64) / 4):
        wide, high = max(right - left, 1) / 2, max(bottom - top, 1) / 3
        for i, j in np.ndindex(3, 2):
            grid = [(top + (i + a) * high, left + (j + b) * wide) for a in (0.25, 0.75) for b in (0.25, 0.75)]
            regions[k, :, i, j] = np.mean([sampled(x[0].astype(np.float64), *p) for p in grid], 0)
    for actual, value in zip(function(x, boxes, scores), (boxes[kept], scores[kept], regions), strict=True):
        close(actual, torch.as_tensor(value))


class Recurrent(nn.Module):
    """A scan with two carried tensors, a weight and a stacked result; a map whose function has an operand."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, 3))

    def forward(self, x):
        def step(carried, row):
            h = torch.tanh(carried[0] @ self.weight + row)
            return (h, carried[1] + h.sum()), h * 2

        (h, total), rows = scan(step, (torch.zeros(3), torch.zeros(())), x)
        return h, total, torch_map(lambda row, last: (row * last).cumsum(0), rows, h)


def test_scans_and_maps_run_and_convert():
    module, x = Recurrent(), images(7, 3)
    function = ow.from_torch(module, (x,))
    expected = module(x)
    for actual, value in zip(function(x.numpy()), expected, strict=True):
        close(actual, value)
    data = ow.lite.TFLiteConverter.from_concrete_functions([function.concrete()]).convert()
    interpreter = ow.lite.Interpreter(model_content=data)
    results = interpreter.get_signature_runner()(**{function.parameters[0]: x.numpy()}).values()
    for value in expected:
        assert any(r.shape == value.shape and np.allclose(r, value.detach(), atol=1e-5) for r in results)


def write_unregistered(path):
    """Write a program with an operator of a package that is gone when the file is read; return its input and result."""
    library = torch.library.Library("opwright_gone", "DEF")
    library.define("wide.two(Tensor x, Tensor[] more, *, int? k=None) -> (Tensor, Tensor)")
    library.impl("wide.two", lambda x, more, k=None: (x + sum(more) * (k or 1), x.sum()), "CompositeExplicitAutograd")

    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(()))

        def forward(self, x):
            self.n.add_(1)  # so that PyTorch traces the program again to make it functional
            y, z = torch.ops.opwright_gone.wide(x, [x, x], k=2)
            return torch.ops.opwright_gone.wide(y, [x])[0] * z + self.n

    x = images(3, 4)
    sizes = {"x": {0: torch.export.Dim("b", min=2, max=9)}}
    torch.export.save(torch.export.export(Counted(), (x,), dynamic_shapes=sizes), path)
    result = Counted()(x)
    library._destroy()
    vars(torch.ops.opwright_gone).pop("wide", None)
    return x, result


def test_files_with_operators_that_no_package_registers(tmp_path):
    path = tmp_path / "m.pt2"
    x, expected = write_unregistered(path)
    with pytest.raises(MissingOperators, match=r"opwright_gone::wide\.two\(x: float32\[\?, 4\].* 2 times") as caught:
        ow.from_torch(path)
    assert 'custom={"opwright_gone::wide.two": Wide}' in str(caught.value)
    assert "more = ow.Input(repeated=True)" in str(caught.value)
    assert not torch._C._jit_get_schemas_for_operator("opwright_gone::wide")  # as before, for the package itself
    assert not hasattr(torch.ops.opwright_gone, "wide")
    wide = {"opwright_gone::wide.two": lambda x, more, k=None: (x + sum(more) * float(k or 1), ow.reduce_sum(x))}
    function = ow.from_torch(path, custom=wide)
    np.testing.assert_allclose(function(x.numpy()).numpy(), expected.numpy(), rtol=1e-5)
    assert write_unregistered(tmp_path / "again.pt2")[1].equal(expected)


def test_damaged_calls_of_operators_that_no_package_registers(tmp_path):
    path = tmp_path / "m.pt2"
    write_unregistered(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    (name,) = (n for n in parts if n.endswith("models/model.json"))

    def read(change):
        value = json.loads(parts[name])
        change(next(n for n in value["graph_module"]["graph"]["nodes"] if "opwright_gone" in n["target"]))
        with zipfile.ZipFile(path, "w") as archive:
            for member, data in {**parts, name: json.dumps(value).encode()}.items():
                archive.writestr(member, data)
        ow.from_torch(path)

    for change in (
        lambda node: node["inputs"].clear(),
        lambda node: node["inputs"][0].update(name="x) -> Tensor"),
        lambda node: node["inputs"][0].update(arg={"as_graph": {}}),
        lambda node: node["inputs"][0].update(arg={"as_tensor": {"name": "nowhere"}}),
        lambda node: node.update(outputs=[]),
        lambda node: node.update(outputs=[{"as_operator": "x"}]),
        lambda node: node.update(target="torch.ops.prim.wide.two"),
        lambda node: node.update(target="torch.ops.aten.add.two"),
    ):
        with pytest.raises(ow.errors.OpError):
            read(change)


def test_operators_of_the_registry_by_their_schema():
    from opwright.frontends.torch.schemas import call_of_schema

    call = call_of_schema("aten::convolution")
    assert call.inputs == (("input", "Tensor"), ("weight", "Tensor"), ("bias", "Tensor?"))
    assert call.attributes == {k: Required("[int]") for k in ("stride", "padding", "dilation", "output_padding")} | {
        "transposed": Required("bool"),
        "groups": Required("int"),
    }
    assert call_of_schema("aten::cat").inputs == (("tensors", "Tensor[]"),)
    assert call_of_schema("aten::index.Tensor").inputs == (("self", "Tensor"), ("indices", "Tensor[]"))
    assert call_of_schema("aten::topk").outputs == 2
    assert call_of_schema("nobody::has") is None


def test_resizing_by_a_factor_of_sizes_that_are_open():
    class Resized(nn.Module):
        def forward(self, x):
            resize = nn.functional.interpolate
            return resize(x, scale_factor=2, mode="bilinear"), resize(x, scale_factor=(1.5, 3.0), mode="nearest")

    sizes = {"x": {2: 2 * torch.export.Dim("h", min=1, max=16), 3: torch.export.Dim("w", min=2, max=32)}}
    module, function = Resized(), ow.from_torch(Resized(), (images(1, 2, 4, 6),), dynamic_shapes=sizes)
    for x in (images(1, 2, 4, 6), images(1, 2, 10, 7)):
        for actual, expected in zip(function(x.numpy()), module(x)):
            np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_errors_of_nodes_have_their_operator_module_and_line():
    class Narrow(nn.Module):
        def forward(self, x):
            return x.to(torch.float8_e4m3fn).float()

    class Cubic(nn.Module):
        def forward(self, x):
            return nn.functional.interpolate(x, scale_factor=1.7, mode="bicubic")

    sizes = ({2: torch.export.Dim("h", min=2, max=64)},)
    here = rf"{__file__}:\d+"
    for module, options, kind, text in (
        (Narrow(), {}, ow.errors.UnimplementedError, rf"aten::to 'inner' \({here}\): .*no such dtype\n.*float8_e4m3fn"),
        (Cubic(), {"dynamic_shapes": sizes}, ow.errors.InvalidArgumentError, rf"'inner' \({here}\): .* unknown size"),
    ):
        outer = nn.Sequential()
        outer.add_module("inner", module)
        with pytest.raises(kind, match=text):
            ow.from_torch(outer, (images(1, 1, 8, 8),), **options).concrete()


LIBRARY = torch.library.Library("opwright_test", "DEF")
LIBRARY.define("cube_plus(Tensor x, float y) -> Tensor")
LIBRARY.define("unknown(Tensor x, int n) -> Tensor")
for _name, _function in {"cube_plus": lambda x, y: x**3 + y, "unknown": lambda x, n: x.clone()}.items():
    LIBRARY.impl(_name, _function, "CompositeExplicitAutograd")


class Custom(nn.Module):
    def forward(self, x):
        return torch.ops.opwright_test.cube_plus(torch.ops.opwright_test.unknown(x, 3), 0.5)


def test_operators_without_a_rule_are_listed_together_and_mapped():
    x = images(2, 3)
    with pytest.raises(MissingOperators) as info:
        ow.from_torch(Custom(), (x,))
    text = str(info.value)
    for part in ("2 operators", "opwright_test::cube_plus", "opwright_test::unknown", "@ow.operator", "class CubePlus"):
        assert part in text

    @ow.operator
    class CubePlusOfTest:
        """Cube and add."""

        x = ow.Input(dtypes=ow.floating)
        result = ow.Output(like="x")
        y = ow.Attr(float, default=0.0)

        def compute(op, x):
            return x**3 + np.float32(op.y)

    mapped = {"opwright_test::cube_plus": CubePlusOfTest, "opwright_test::unknown": lambda x, n: x}
    close(ow.from_torch(Custom(), (x,), custom=mapped)(x.numpy()), Custom()(x))


def test_bad_arguments():
    with pytest.raises(ow.errors.InvalidArgumentError, match="example inputs"):
        ow.from_torch(Net())
    with pytest.raises(ow.errors.InvalidArgumentError, match="neither a module"):
        ow.from_torch(3)
    with pytest.raises(ow.errors.InvalidArgumentError, match="input_layout"):
        ow.from_torch(Net().eval(), (images(1, 3, 16, 16),), input_layout="nwhc")
    with pytest.raises(ow.errors.UnimplementedError, match=r"eval\(\)"):
        ow.from_torch(nn.Dropout(0.5).train(), (images(3),)).concrete()


Z = torch.randn(3, 4, dtype=torch.complex64, generator=torch.Generator().manual_seed(24))
X = torch.randn(3, 4, generator=torch.Generator().manual_seed(25))
REAL_RESULTS = {
    "magnitude": lambda z, x: z.abs(),
    "spectrum": lambda z, x: torch.fft.rfft(x).abs(),
    "norms": lambda z, x: torch.stack([torch.linalg.vector_norm(z, order, 1) for order in (1, 2, float("inf"))]),
    "variance": lambda z, x: z.var(1),
    "deviation": lambda z, x: torch.std_mean(z, 0, correction=0)[0],
    "product": lambda z, x: torch.view_as_real(torch.vdot(z[0], z[1])),
    "bits": lambda z, x: x.view(torch.int32),
    "bits of half the size": lambda z, x: x.view(torch.int16),
    "bits of twice the size": lambda z, x: x.view(torch.int64),
}


@pytest.mark.parametrize("name", REAL_RESULTS)
def test_real_results_of_complex_numbers_and_bits(name):
    class Program(nn.Module):
        def forward(self, z, x):
            return REAL_RESULTS[name](z, x)

    function = ow.from_torch(Program(), (Z, X))
    actual = torch.from_numpy(np.asarray(function(Z.numpy(), X.numpy())))
    torch.testing.assert_close(actual, Program()(Z, X), rtol=1e-5, atol=1e-6)


def test_an_encoder_of_any_batch_and_length():
    """Attention of unknown lengths, where a dimension is divided next to two unknown ones."""
    torch.manual_seed(26)
    layer = nn.TransformerEncoderLayer(12, 3, 24, batch_first=True).eval()
    dims = {0: torch.export.Dim("b"), 1: torch.export.Dim("s", min=2, max=64)}
    with torch.no_grad():
        function = ow.from_torch(layer, (torch.randn(2, 7, 12),), dynamic_shapes=(dims,))
        for batch, length in ((2, 7), (3, 5), (1, 9)):
            x = torch.randn(batch, length, 12)
            torch.testing.assert_close(
                torch.from_numpy(np.asarray(function(x.numpy()))), layer(x), rtol=1e-4, atol=1e-5
            )
