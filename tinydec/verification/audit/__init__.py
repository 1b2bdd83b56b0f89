"""The audit: six stages in dependency order over a recording, each judging one contract.

1. ``checkpoint``: checkpoint, vocabulary, mode and the uncached reference.
2. ``cache``: rows, axes, length, order and layer of what is stored.
3. ``position``: positions, owners, later overwrites, refusals.
4. ``equivalence``: cached against uncached, tensor by tensor.
5. ``policy``: probabilities, draws and tokens from logits that are taken as given.
6. ``stopping``: stop reasons and the account of returned and consumed tokens.

A stage after the first failing one is not judged: what it would see may only echo the failure.
"""
