"""Instructions that a network's run takes on 64-bit ARM, counted under QEMU: `python -m benchmarks.arm`."""
