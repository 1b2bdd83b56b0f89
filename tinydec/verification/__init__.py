"""Proof: the cached path against the full forward, and both against independent oracles."""
