"""Speed and size against targets and peers: `make bench`, or `python -m benchmarks --help`."""
