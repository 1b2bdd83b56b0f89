"""Every element of a recorded run, for tests of their explanations."""

from __future__ import annotations

from collections.abc import Iterator

from tinydec.generation.generate import generate
from tinydec.model.activations import HEAD_TENSORS, tensor_names
from tinydec.model.storage import FROZEN_PATH, load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.verification.explain import Element, Recording, explain

FROZEN = load_checkpoint(FROZEN_PATH)


def elements(recording: Recording, step: int) -> Iterator[Element]:
    """Every element of every named tensor of a step."""
    for tensor in tensor_names(recording.checkpoint.config.n_layer):
        array = recording.array(step, tensor)
        heads = array.shape[1] if tensor.rsplit(".", 1)[-1] in HEAD_TENSORS else 1
        for sequence in range(len(array)):
            for head in range(heads):
                for position in recording.positions(step, tensor):
                    for index in range(array.shape[-1]):
                        yield Element(step, tensor, position, index, head, sequence)


def frozen_run(dtype: str = "float32", cache: bool = True, prompt: str = "<bos> A") -> Recording:
    spec = RunSpec(prompt=tuple(prompt.split()), dtype=dtype, cache=cache)
    trace = generate(FROZEN, spec, keep_activations=True)
    return Recording.of_trace(FROZEN.cast(dtype), trace)


def disagreeing(recording: Recording, step: int) -> list[str]:
    return [
        f"{node.name}: {node.difference} > {node.bound}"
        for node in (explain(recording, e) for e in elements(recording, step))
        if not node.agrees
    ]
