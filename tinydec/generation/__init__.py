"""Generation: policies over fixed logits, requests, and runs with and without a cache."""
