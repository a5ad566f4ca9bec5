"""A debugger inside a function while it is traced: it stops at the user's line and shows the user's source."""

import subprocess
import sys
import textwrap

import pytest

PROGRAM = textwrap.dedent("""
    import opwright as ow

    @ow.function
    def f(x, n):
        total = x * 0.0
        for i in ow.range(n):
            total += x
            breakpoint()
            if total > 10.0:
                total = total - 1.0
        return total

    print("result", f(ow.constant(2.0), ow.constant(3)).numpy())
""")


@pytest.mark.ours
def test_pdb_in_a_staged_loop(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, "utf-8")
    process = subprocess.run(
        [sys.executable, file],
        input="p total\np x.dtype\nw\nc\n",
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    shown = process.stdout.splitlines()
    here = sys.version_info >= (3, 13)  # from there on breakpoint() stops at itself, not at what follows
    assert shown[0] == f"> {file}({9 if here else 10})f()"
    assert shown[1] == ("-> breakpoint()" if here else "-> if total > 10.0:")
    assert "Tensor" in shown[2]
    assert "tf.float32" in shown[3]
    assert any(line.endswith("program.py(14)<module>()") for line in shown)  # the way there, frame by frame
    assert shown[-1].endswith("result 6.0")
