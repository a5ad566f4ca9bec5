"""Tutorials in small run to the end and learn their tasks; where TensorFlow's figure is recorded, as well as it."""

import json
import pathlib

import lessons
import pytest

import opwright as ow
from thorough import sampled

RESULTS = json.loads(pathlib.Path(__file__).with_name("lessons.json").read_text())
NAMES = list(lessons.LESSONS)


def test_lessons_are_of_all_subjects():
    assert len(NAMES) >= 30
    assert set(RESULTS) - {"made_with"} <= set(NAMES)
    assert {each.subject for each in lessons.LESSONS.values()} == {
        *("vision", "text", "audio", "structured data", "generative", "reinforcement learning", "forecasting")
    }


@pytest.mark.parametrize("name", sampled(NAMES, 6))
def test_lesson(name):
    each = lessons.LESSONS[name]
    ow.keras.utils.set_random_seed(1)
    figure = float(each.run(ow))
    assert each.least <= figure <= each.most
    if "figure" in RESULTS.get(name, {}):
        assert figure == pytest.approx(RESULTS[name]["figure"], abs=each.noise)
