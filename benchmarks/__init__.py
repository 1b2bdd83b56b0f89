"""Side-by-side timings of the decoder and its peers; see ``benchmarks/__main__.py``."""
