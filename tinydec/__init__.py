"""tinydec: see, break and prove autoregressive generation with a KV cache.

Importing this package needs NumPy and safetensors alone; the app and the evidence tables
bring their own dependencies where they are used.
"""

__version__ = "0.1.0"
