"""Test processor features that LLVM does not detect: those of 64-bit ARM in Linux's list."""

import pytest

from opwright.compiler.native import host

CPUINFO = """processor\t: 0
Features\t: fp asimd {features}
CPU implementer\t: 0x41

processor\t: 1
Features\t: fp asimd bf16
"""


@pytest.mark.parametrize(
    ("machine", "features", "wanted"),
    [
        ("aarch64", "asimdhp asimddp i8mm", {"+fullfp16", "+dotprod", "+i8mm"}),
        ("aarch64", "crc32", set()),
        ("x86_64", "asimddp", set()),
    ],
)
def test_features_of_arm(monkeypatch, tmp_path, machine, features, wanted):
    listed = tmp_path / "cpuinfo"
    listed.write_text(CPUINFO.format(features=features))
    monkeypatch.setattr(host, "_CPUINFO", listed)
    monkeypatch.setattr(host.platform, "machine", lambda: machine)
    assert set(host._listed_for_arm()) == wanted


def test_no_list_of_features(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "_CPUINFO", tmp_path / "none")
    monkeypatch.setattr(host.platform, "machine", lambda: "aarch64")
    assert host._listed_for_arm() == []
