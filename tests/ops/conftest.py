"""Puts this folder on the path, so that tables and tests import `harness` by its plain name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
