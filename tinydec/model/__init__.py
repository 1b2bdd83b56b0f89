"""The decoder: config, vocabulary, checkpoint, the full forward and the cached path."""
