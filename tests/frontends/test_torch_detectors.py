"""Detectors of torchvision through `ow.from_torch`, as a whole. Not here: their operators (test_torch_programs.py)."""

from __future__ import annotations

import pytest

import opwright as ow

torch = pytest.importorskip("torch")
vision = pytest.importorskip("torchvision")
survey = pytest.importorskip("torch_survey")
nn = torch.nn


def test_a_detector_is_imported_whole():
    """A Faster R-CNN of two small levels, with suppression in its proposals and results, against torchvision's own."""
    before = vision.ops.boxes.batched_nms
    torch.manual_seed(24)

    class Levels(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 8, 3, 4, 1), nn.Conv2d(8, 8, 3, 2, 1)
            self.out_channels = 8

        def forward(self, x):
            y = torch.relu(self.first(x))
            return {"0": y, "1": torch.relu(self.second(y))}

    detection = vision.models.detection
    anchors = detection.rpn.AnchorGenerator(((8,), (16,)), ((0.5, 1.0, 2.0),) * 2)
    pool = vision.ops.MultiScaleRoIAlign(["0", "1"], 3, 2)
    sizes = {"min_size": 48, "max_size": 64, "box_score_thresh": 0.0, "rpn_post_nms_top_n_test": 20}
    model = detection.FasterRCNN(Levels(), 4, rpn_anchor_generator=anchors, box_roi_pool=pool, **sizes)
    for parameter in model.parameters():
        if parameter.dim() > 1 and parameter.std() < 0.02:
            nn.init.normal_(parameter, std=0.5 / parameter[0].numel() ** 0.5)
    detector, image = survey._Detector(model).eval(), torch.rand(3, 48, 64)
    with torch.no_grad():
        expected = detector(image)
        function = ow.from_torch(detector, (image,))
    assert vision.ops.boxes.batched_nms is before
    assert len(expected[1]) > 3
    assert survey.boxes_error(list(function(image.numpy())), expected) < 1e-4


def test_masks_are_pasted_as_torchvision_pastes_them():
    """Boxes inside of the image, over its edges, of one pixel, and none."""
    from opwright.frontends.torch import detectors

    torch.manual_seed(25)
    corners = torch.tensor(
        [[3.2, 4.9, 20.1, 17.5], [-9.0, -4.0, 12.0, 40.0], [7.1, 8.2, 7.3, 8.4], [0.0, 0.0, 31.0, 23.0]]
    )
    masks = torch.rand(4, 1, 28, 28)
    for count in (4, 0):
        expected = vision.models.detection.roi_heads.paste_masks_in_image(masks[:count], corners[:count], (24, 32))
        actual = detectors.pasted_masks(masks[:count], corners[:count], (24, 32))
        assert actual.shape == expected.shape
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


def test_keypoints_are_where_torchvision_finds_them():
    """Boxes inside of the image, as large as it, of one pixel; the largest values at edges of maps, too."""
    from opwright.frontends.torch import detectors

    maps = torch.randn(4, 3, 14, 14, generator=torch.Generator().manual_seed(26))
    maps[0, 1, 0, 13] = 9.0
    corners = torch.tensor([[3.2, 4.9, 20.1, 17.5], [0, 0, 64, 48], [7.1, 8.2, 7.3, 8.4], [1, 2, 31, 47.5]])
    for count in (4, 0):
        expected = vision.models.detection.roi_heads.heatmaps_to_keypoints(maps[:count], corners[:count])
        actual = detectors.places_of_keypoints(maps[:count], corners[:count], shapes=[(48, 64)])
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("aligned", [False, True])
def test_regions_beyond_the_edges_of_an_image(aligned):
    """Narrow regions at an edge, ones outside, one around the image: as the installed torchvision pools them."""
    x = torch.rand(1, 2, 3, 4, generator=torch.Generator().manual_seed(3))
    corners = [[127.0, 0, 128, 96], [118.1, 71.8, 128, 96], [-60, -70, -31, -31.9], [-40, -40, 300, 300]]
    regions = torch.tensor([[0, *four] for four in corners])

    class Pooled(nn.Module):
        def forward(self, x, regions):
            return vision.ops.roi_align(x, regions, (2, 3), 1 / 32, 2, aligned)

    function = ow.from_torch(Pooled(), (x, regions))
    actual = torch.from_numpy(function(x.numpy(), regions.numpy()).numpy())
    torch.testing.assert_close(actual, Pooled()(x, regions), rtol=0, atol=1e-5)
