"""Kernels for a wheel that is built from sources: `pip install .` compiles those of mobile networks for this machine.

Lives here: the hook that hatchling calls when it builds; it asks benchmarks/prebuild.py for the kernels.
Not here: which kernels, and their file (benchmarks/prebuild.py, src/opwright/compiler/native/prebuilt.py).

An editable installation gets none: kernels are for sources to the byte, which a developer changes. A build without them
succeeds, with a warning: each machine then compiles what it needs. OPWRIGHT_BUILD_KERNELS=0 leaves them out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIMIT_S = 600


class KernelBuildHook(BuildHookInterface[Any]):
    """Compiles kernels before files are collected for a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile kernels unless the tree has valid ones. version: "standard" or "editable"."""
        if version == "editable" or os.environ.get("OPWRIGHT_BUILD_KERNELS") == "0":
            return
        # In front of pip's own PYTHONPATH, by which an isolated build sees the run-time dependencies.
        path = [os.path.join(self.root, "src"), self.root, *filter(None, [os.environ.get("PYTHONPATH")])]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.prebuild", "--missing"],
                cwd=self.root,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
            )
        except (OSError, subprocess.SubprocessError) as error:
            self.app.display_warning(f"no kernels are compiled: {error}")
            return
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            self.app.display_warning(f"no kernels are compiled: {why[0]}")
