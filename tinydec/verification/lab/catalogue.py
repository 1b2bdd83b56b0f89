"""The faults of loading, single requests and policies, as data.

Sources: the course's two failure tables, and threads of public trackers (named by project and
number). ``tests/verification/lab`` shows each caught at its own stage.
"""

from __future__ import annotations

from tinydec.generation.seams import PolicySeams
from tinydec.model.config import ModelConfig
from tinydec.model.seams import ReferenceSeams, Seams
from tinydec.verification.lab import actions
from tinydec.verification.lab.fault import LOAD, Fault
from tinydec.verification.lab.intervention import Intervention, solo

_CHECKPOINT = frozenset({"checkpoint"})
_REQUEST = frozenset({"request"})
_LAYER = frozenset({"layer"})
_POSITION = frozenset({"position"})
_PAST_END = frozenset({"overflow", "position"})

_TWO_INPUTS = "a prompt of at least two tokens"
_DECODE = "at least one decode step"
_TWO_LAYERS = "at least two layers"


def _needs_two_tokens(_config: ModelConfig, length: int) -> str | None:
    return "a one-token prefix has position 0 anyway" if length < 2 else None


def _needs_two_layers(config: ModelConfig, _length: int) -> str | None:
    return "the model has one layer" if config.n_layer < 2 else None


LOADING: tuple[Fault, ...] = (
    Fault(
        "F04", "lost-tensor", 1,
        "The output head is missing from the file and is replaced by zeros: every token gets the "
        "same logit.",
        "golden logits only", "vllm 54623",
        Intervention(load=actions.lose_output_head), part=LOAD, silent=True,
    ),
    Fault(
        "F05", "wrong-vocabulary", 1,
        "Token strings and ids are rotated against the checkpoint.",
        "vocabulary digest; decoded tokens", "course",
        Intervention(load=actions.rotate_vocabulary), part=LOAD, silent=True,
    ),
    Fault(
        "F06", "training-mode", 1,
        "The uncached path runs with dropout, because the mode was left at training.",
        "the mode; two uncached runs differ", "course",
        Intervention(load=actions.in_training_mode), part=LOAD,
    ),
    Fault(
        "F29", "broken-reference", 1,
        "The uncached path is the wrong one: it hides no later token.",
        "golden logits name the culprit", "candle 1517, mistral.rs 765",
        Intervention(reference=ReferenceSeams(future=actions.nothing_hidden)), part=LOAD,
        needs=_TWO_INPUTS,
        variants={
            "position row": Intervention(
                reference=ReferenceSeams(position_rows=actions.second_row_first)
            )
        },
    ),
)  # fmt: skip

CACHE: tuple[Fault, ...] = (
    Fault(
        "F07", "duplicate-append", 2,
        "K and V of one input are appended twice.",
        "cached length; logits", "course; transformers 28056",
        solo(model=Seams(appends=actions.third_input_twice), capacity_factor=1),
        needs="at least three inputs, and capacity above the context",
    ),
    Fault(
        "F08", "duplicated-prompt-token", 2,
        "The last prompt token is consumed twice.",
        "cached length against the request's inputs", "course",
        solo(consumes=actions.last_prompt_token_twice),
        needs="a prompt shorter than the context",
    ),
    Fault(
        "F09", "missing-append", 2,
        "The counter moves on, but the slot of one input is never written.",
        "the row against its recorded input", "course; TrenTorch PR 192",
        solo(model=Seams(appends=actions.second_input_never)), needs=_TWO_INPUTS,
    ),
    Fault(
        "F10", "reset-keeps-length", 2,
        "Reset clears the arrays and leaves the length, so the next request starts behind "
        "empty slots.",
        "what reset leaves behind; logits", "transformers PR 48509",
        solo(model=Seams(reset_keeps_length=True), capacity_factor=1),
    ),
    Fault(
        "F11", "key-value-swapped", 2,
        "V is built from K.",
        "the row against its recorded input", "transformers 34232, vllm-ascend PR 11021",
        solo(model=Seams(stored=actions.values_from_keys)),
    ),
    Fault(
        "F12", "unused-slots-attended", 2,
        "Attention reads one slot past the cached length.",
        "score width against cached length; logits", "vllm-mlx 384, mlx-examples 977",
        solo(model=Seams(read_beyond=1), capacity_factor=1),
        needs="capacity above the cached length",
    ),
    Fault(
        "F13", "doubled-uniformly", 2,
        "Every entry stands twice. Attention averages over twins, so nothing moves.",
        "cached length only", "measured here",
        solo(model=Seams(appends=actions.every_input_twice), capacity_factor=2), silent=True,
        needs="capacity above the context",
    ),
    Fault(
        "F14", "slots-permuted", 2,
        "K and V change places between slots together. Attention does not know the order of "
        "slots, so nothing moves.",
        "slot order only", "measured here; transformers PR 47708",
        solo(cache_before=actions.permute_slots), silent=True,
        needs=f"{_TWO_INPUTS} and {_DECODE}",
    ),
    Fault(
        "F15", "wrong-axis", 2,
        "Rows in the order (B, t, h, d_h) are read as (B, h, t, d_h).",
        "the row against its recorded input", "course",
        solo(model=Seams(stored=actions.axes_mistaken)),
        needs=f"{_TWO_INPUTS} and at least two heads",
    ),
    Fault(
        "F19", "wrong-layer", 2,
        "The second layer attends over the first layer's keys and values.",
        "what attention read; logits", "course; TensorRT-LLM issue 16801",
        solo(model=Seams(read_layer=actions.first_layer_for_second), guards_off=_LAYER),
        guard="layer", needs=_TWO_LAYERS, cannot_act=_needs_two_layers,
    ),
    Fault(
        "F20", "layers-swapped", 2,
        "Two layers exchange their caches after prefill.",
        "layer tag; logits", "measured here",
        solo(cache_before=actions.swap_layers, guards_off=_LAYER),
        guard="layer", needs=f"{_TWO_LAYERS} and {_DECODE}",
    ),
)  # fmt: skip

POSITION: tuple[Fault, ...] = (
    Fault(
        "F01", "stale-cache", 3,
        "The key and value weights change after prefill, and the cache is kept.",
        "checkpoint digest; logits", "course; vllm 9744, NeMo-RL 4018",
        solo(checkpoint_at=actions.new_projections, guards_off=_CHECKPOINT),
        guard="checkpoint", needs=_DECODE,
    ),
    Fault(
        "F02", "stale-by-identity", 3,
        "Weights change that feed no key or value (the last layer's MLP, the final norm), and "
        "the cache is kept: step by step nothing differs.",
        "checkpoint digest only", "follows from stale-cache",
        solo(checkpoint_at=actions.new_last_layers, guards_off=_CHECKPOINT),
        guard="checkpoint", silent=True, needs=_DECODE,
    ),
    Fault(
        "F03", "same-label", 3,
        "The cache is found by the checkpoint's name, and two checkpoints share it.",
        "checkpoint digest", "vllm 42125, vllm 30931",
        solo(checkpoint_at=actions.other_checkpoint, guards_off=_CHECKPOINT),
        guard="checkpoint", needs=_DECODE,
    ),
    Fault(
        "F16", "positions-reset", 3,
        "Every input gets position 0 instead of the number of consumed inputs.",
        "position record; logits", "course; mlx-lm PR 93",
        solo(model=Seams(position=actions.position_zero), guards_off=_POSITION),
        guard="position", needs="at least two inputs", cannot_act=_needs_two_tokens,
    ),
    Fault(
        "F17", "position-off-by-one", 3,
        "The next input gets a position one too high.",
        "position record; logits", "mlx-lm 1097",
        solo(model=Seams(position=actions.position_after), guards_off=_POSITION),
        guard="position",
        variants={
            "one too low": solo(
                model=Seams(position=actions.position_before), guards_off=_POSITION
            )
        },
    ),
    Fault(
        "F18", "prompt-counted-twice", 3,
        "The prompt's length is added again from the first decode step on.",
        "position record; a position that does not exist", "tiny-llm PR 46",
        solo(position_from_prompt=actions.prompt_counted_twice, guards_off=_POSITION),
        guard="position", needs=_DECODE,
    ),
    Fault(
        "F21", "other-request", 3,
        "A request decodes on another request's cache of the same length.",
        "request tag; logits", "course; llama.cpp 27148, mlx-lm 965",
        solo(uses_neighbour=True, guards_off=_REQUEST),
        guard="request", needs=_DECODE,
    ),
    Fault(
        "F22", "slot-overwritten", 3,
        "Another request writes one of its rows into this request's cache.",
        "request tag; a row that changed after its append", "tt-xla PR 4190",
        solo(cache_before=actions.overwritten_by_neighbour), needs=_DECODE,
    ),
    Fault(
        "F23", "overflow-not-refused", 3,
        "An input past the context is computed at position 0 instead of being refused.",
        "the refusal that did not come", "course; gpt-2 121, causal-transformer-decoder 3",
        solo(model=Seams(past_context=actions.wrap), guards_off=_PAST_END), guard="overflow",
        variants={
            "clamped": solo(model=Seams(past_context=actions.clamp), guards_off=_PAST_END),
            "rolling": solo(model=Seams(rolls_when_full=True)),
        },
    ),
    Fault(
        "F37", "returned-token-fed-back", 3,
        "The last returned token is consumed although the context is full, at a position that "
        "does not exist.",
        "consumed against returned tokens; the refusal that did not come", "course",
        solo(
            stop_reason=actions.once_more_past_context,
            capacity_factor=1,
            guards_off=frozenset({"overflow"}),
        ),
        guard="overflow", needs="a run that fills the context",
    ),
)  # fmt: skip

EQUIVALENCE: tuple[Fault, ...] = (
    Fault(
        "F24", "prefill-not-causal", 4,
        "Prefill with a cache forgets the causal mask.",
        "attention; logits, though the highest one seldom changes", "TinyLLM 17",
        solo(model=Seams(visible=actions.everything_visible)), needs=_TWO_INPUTS,
    ),
    Fault(
        "F25", "mask-top-left", 4,
        "With one query and several keys, only the first key is visible.",
        "attention; logits", "x-transformers 187",
        solo(model=Seams(visible=actions.top_left)), needs=_DECODE,
    ),
)  # fmt: skip

POLICY: tuple[Fault, ...] = (
    Fault(
        "F30", "ties-all-kept", 5,
        "Top-k keeps every token whose logit equals the k-th highest.",
        "number of kept tokens", "vllm PR 15478",
        solo(policy=PolicySeams(keeps_ties=True)), needs="a row with ties",
    ),
    Fault(
        "F31", "not-renormalised", 5,
        "Probabilities after top-k do not sum to one.",
        "sum of probabilities", "course",
        solo(policy=PolicySeams(renormalises=False)), needs="a top-k below the vocabulary size",
    ),
    Fault(
        "F32", "temperature-inverted", 5,
        "Logits are multiplied by the temperature.",
        "probabilities recomputed from logits", "course; mlx-lm on negative temperatures",
        solo(policy=PolicySeams(multiplies_temperature=True)),
        needs="a temperature other than 1",
    ),
    Fault(
        "F33", "extra-draw", 5,
        "One more random number is drawn at each step.",
        "generator state before and after", "course",
        solo(policy=PolicySeams(extra_draws=1)), needs="a sampled run",
    ),
    Fault(
        "F40", "tie-takes-last", 5,
        "Greedy takes the highest id of a tie.",
        "the token recomputed from the logits", "course",
        solo(policy=PolicySeams(ties_take_last=True)), needs="a row with ties",
    ),
    Fault(
        "F41", "domain-not-refused", 5,
        "A temperature, top-k or top-p outside its domain is moved into it instead of refused.",
        "the refusal that did not come", "course; seen in mlx-lm and llama.cpp",
        solo(policy=PolicySeams(clamps_domain=True)),
    ),
)  # fmt: skip

STOPPING: tuple[Fault, ...] = (
    Fault(
        "F36", "eos-reported-as-length", 6,
        "<eos> at the last position is recorded as the context limit.",
        "stop reason", "candle 3810, sglang 31599",
        solo(stop_reason=actions.eos_as_context), needs="<eos> at the last position",
    ),
)  # fmt: skip

REQUEST_FAULTS: tuple[Fault, ...] = (
    *LOADING, *CACHE, *POSITION, *EQUIVALENCE, *POLICY, *STOPPING,
)  # fmt: skip
