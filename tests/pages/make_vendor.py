"""Write the scripts of other projects that pages contain, and axe-core for tests: `make vendor` (needs npm).

Lives here: which files come from which package, the bundle of Observable Plot, licences. Versions and digests of
packages are those of vendor/package-lock.json, which `npm ci` compares; digests of the files that result are in
vendor/digests.json, which a test compares (test_vendor.py).

Plot and d3 are bundled by esbuild, which leaves out what charts.js does not use: 271 kB instead of 490.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGES = ROOT / "src" / "opwright" / "pages" / "vendor"
AXE = ROOT / "build" / "vendor" / "axe.min.js"
"""For tests alone: no part of the package."""
DIGESTS = HERE / "vendor" / "digests.json"

MARKS = "plot, areaY, barX, barY, dot, lineY, rectX, rectY, ruleX, ruleY, text, tip, binX"
"""Functions of Observable Plot that charts.js calls, and marks that charts.py allows."""


def main() -> None:
    """Fetch the packages, bundle, write files and their digests."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "vendor" / name, folder)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
        modules = folder / "node_modules"
        bundle, licence = _plot(folder)
        files = {
            "dagre.min.js": (modules / "@dagrejs/dagre/dist/dagre.min.js").read_text("utf-8"),
            "plot.min.js": bundle,
            "plot.LICENSE": licence,
            "temml.min.js": (modules / "temml/dist/temml.min.js").read_text("utf-8"),
            "temml.LICENSE": (modules / "temml/LICENSE").read_text("utf-8"),
        }
        for name, text in files.items():
            (PAGES / name).write_text(text, "utf-8")
        AXE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(modules / "axe-core" / "axe.min.js", AXE)
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    digests[AXE.name] = hashlib.sha256(AXE.read_bytes()).hexdigest()
    DIGESTS.write_text(json.dumps(digests, indent=2) + "\n", "utf-8")


def _plot(folder: Path) -> tuple[str, str]:
    """Return the bundle of Plot with what it needs, and the licences of all of it."""
    (folder / "plot.mjs").write_text(f'export {{ {MARKS} }} from "@observablehq/plot";\n')
    command = [
        *("node_modules/.bin/esbuild", "plot.mjs", "--bundle", "--minify", "--format=iife", "--global-name=Plot"),
        *("--legal-comments=none", "--charset=utf8", "--log-level=error", "--metafile=meta.json", "--outfile=plot.js"),
    ]
    subprocess.run(command, cwd=folder, check=True)
    inputs = json.loads((folder / "meta.json").read_text())["inputs"]
    packages = sorted({_package(path) for path in inputs if path.startswith("node_modules/")})
    of_terms: dict[str, list[str]] = {}  # packages, with their copyright, by the terms that they share
    for name in packages:
        package = folder / "node_modules" / name
        version = json.loads((package / "package.json").read_text())["version"]
        lines = (package / "LICENSE").read_text("utf-8").strip().splitlines()
        notices = [line.strip() for line in lines if line.strip().lower().startswith("copyright")]
        terms = "\n".join(line.rstrip() for line in lines if line.strip() not in notices).strip()
        of_terms.setdefault(terms, []).append(f"{name} {version}: {' '.join(notices)}")
    licence = "\n\n".join("\n".join([*names, "", terms]) for terms, names in of_terms.items())
    return (folder / "plot.js").read_text("utf-8"), licence + "\n"


def _package(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[1:3] if parts[1].startswith("@") else parts[1:2])


if __name__ == "__main__":
    main()
