"""Images: sizes, frames, colours, boxes, quality. Public names as in `ow.image`.

Lives here: the family's public names.  Not here: reading and writing files of images; convolutions and pools (nn/).
"""

from __future__ import annotations

from .adjustment import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    per_image_standardization,
    random_brightness,
    random_contrast,
    random_hue,
    random_saturation,
    stateless_random_brightness,
    stateless_random_contrast,
    stateless_random_hue,
    stateless_random_saturation,
)
from .boxes import draw_bounding_boxes, sample_distorted_bounding_box, stateless_sample_distorted_bounding_box
from .colours import (
    convert_image_dtype,
    grayscale_to_rgb,
    hsv_to_rgb,
    rgb_to_grayscale,
    rgb_to_hsv,
    rgb_to_yiq,
    rgb_to_yuv,
    yiq_to_rgb,
    yuv_to_rgb,
)
from .framing import (
    central_crop,
    crop_to_bounding_box,
    flip_left_right,
    flip_up_down,
    pad_to_bounding_box,
    random_crop,
    random_flip_left_right,
    random_flip_up_down,
    resize_with_crop_or_pad,
    rot90,
    stateless_random_crop,
    stateless_random_flip_left_right,
    stateless_random_flip_up_down,
    transpose,
)
from .nms import (
    combined_non_max_suppression,
    non_max_suppression,
    non_max_suppression_overlaps,
    non_max_suppression_padded,
    non_max_suppression_with_scores,
)
from .quality import image_gradients, psnr, sobel_edges, ssim, ssim_multiscale, total_variation
from .regions import crop_and_resize, extract_patches
from .resize import ResizeMethod, resize, resize_with_pad

__all__ = [
    "ResizeMethod", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation",
    "central_crop", "combined_non_max_suppression", "convert_image_dtype", "crop_and_resize", "crop_to_bounding_box",
    "draw_bounding_boxes", "extract_patches", "flip_left_right", "flip_up_down", "grayscale_to_rgb", "hsv_to_rgb",
    "image_gradients", "non_max_suppression", "non_max_suppression_overlaps", "non_max_suppression_padded",
    "non_max_suppression_with_scores", "pad_to_bounding_box", "per_image_standardization", "psnr", "random_brightness",
    "random_contrast", "random_crop", "random_flip_left_right", "random_flip_up_down", "random_hue",
    "random_saturation", "resize", "resize_with_crop_or_pad", "resize_with_pad", "rgb_to_grayscale", "rgb_to_hsv",
    "rgb_to_yiq", "rgb_to_yuv", "rot90", "sample_distorted_bounding_box", "sobel_edges", "ssim", "ssim_multiscale",
    "stateless_random_brightness", "stateless_random_contrast", "stateless_random_crop",
    "stateless_random_flip_left_right", "stateless_random_flip_up_down", "stateless_random_hue",
    "stateless_random_saturation", "stateless_sample_distorted_bounding_box", "total_variation", "transpose",
    "yiq_to_rgb", "yuv_to_rgb",
]
