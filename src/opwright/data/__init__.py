"""Input pipelines. Empty until `Dataset` is built."""
