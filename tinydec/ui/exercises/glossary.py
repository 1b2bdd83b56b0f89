"""The glossary: symbols, tensors and words, with the sizes of the checkpoint that runs."""

from __future__ import annotations

from dataclasses import dataclass

from tinydec.model.config import ModelConfig
from tinydec.ui.domains import TEMPERATURE


@dataclass(frozen=True)
class Entry:
    """One line of the glossary.

    Attributes:
        term: symbol, tensor or word.
        here: its size or axes on this checkpoint; empty for a word.
        meaning: in a sentence.
        page: ``url_path`` of the page that shows it.
    """

    term: str
    here: str
    meaning: str
    page: str


def symbols(config: ModelConfig) -> tuple[Entry, ...]:
    """Return every letter that names a size."""
    context = config.n_positions
    return (
        Entry("B", "1 or more", "requests that run side by side in one pass", "batches"),
        Entry(
            "P", f"1 to {context}", "new positions in a pass; 1 in a decode step", "prefill_decode"
        ),
        Entry("t", f"1 to {context}", "positions held in the cache", "kv_cache"),
        Entry("T", f"1 to {context}", "length of a prefix, or inputs consumed so far", "positions"),
        Entry(
            "τ",
            "{} to {:g}".format(*TEMPERATURE),
            "temperature: the logits are divided by it; T is a length, never a temperature",
            "decoding_policy",
        ),
        Entry("L", str(config.n_layer), "layers, counted from 0", "decode_step"),
        Entry("h", str(config.n_head), "heads of a layer, counted from 0", "decode_step"),
        Entry(
            "h.0, h.1",
            f"{config.n_layer} in all",
            "GPT-2's name of a layer (block): h.1.q are the queries of layer 1, all heads of it",
            "decode_step",
        ),
        Entry("d", str(config.n_embd), "width of a row between layers; h times d_h", "decode_step"),
        Entry("d_h", str(config.d_h), "width of one head", "decode_step"),
        Entry("m", str(config.n_inner), "width inside the MLP", "decode_step"),
        Entry("V", str(config.vocab_size), "tokens in the vocabulary", "decoding_policy"),
        Entry("z", f"{config.vocab_size} numbers", "one row of logits", "decoding_policy"),
        Entry("u", "0 ≤ u < 1", "the uniform number of one sampled token", "decoding_policy"),
        Entry("ε", "by number format", "largest difference that still passes", "equivalence"),
    )


def tensors(config: ModelConfig) -> tuple[Entry, ...]:
    """Return every tensor of a pass with its axes, the sizes filled in where they are fixed."""
    heads, head, width = config.n_head, config.d_h, config.n_embd
    inner, vocabulary = config.n_inner, config.vocab_size
    return (
        Entry("token ids", "(B, P)", "the inputs that a pass consumes", "generation_loop"),
        Entry("embedding", f"(B, P, {width})", "token row plus position row", "positions"),
        Entry("q", f"(B, {heads}, P, {head})", "queries of the new positions", "decode_step"),
        Entry("k, v", f"(B, {heads}, P, {head})", "keys and values that a pass makes", "kv_cache"),
        Entry(
            "keys, values",
            f"(B, {heads}, t, {head})",
            "what attention reads: the cache, the new ones included",
            "kv_cache",
        ),
        Entry(
            "scores",
            f"(B, {heads}, P, t)",
            "query times key over √d_h; minus infinity where the mask hides a key",
            "decode_step",
        ),
        Entry(
            "attention",
            f"(B, {heads}, P, t)",
            "softmax of a row of scores; sums to 1",
            "decode_step",
        ),
        Entry("mix", f"(B, {heads}, P, {head})", "values averaged by those weights", "decode_step"),
        Entry("MLP hidden", f"(B, P, {inner})", "a row inside the MLP", "decode_step"),
        Entry("logits", f"(B, P, {vocabulary})", "one number for each token", "decoding_policy"),
    )


def words() -> tuple[Entry, ...]:
    """Return the terms, each in a sentence, in the order in which the lessons need them."""
    return tuple(Entry(term, "", meaning, page) for term, meaning, page in _WORDS)


_WORDS = (
    ("token", "A piece of text that the decoder reads or returns, known by its id.", "home"),
    ("checkpoint", "A model's sizes, tokens and weights in a file.", "home"),
    ("prefix", "All tokens so far: the prompt and what was returned.", "generation_loop"),
    ("consumed input", "A token that the decoder has read.", "generation_loop"),
    (
        "returned token",
        "A token that the policy picked. The last one of a run is never consumed.",
        "generation_loop",
    ),
    (
        "stop reason",
        "Why a run ended: eos, stop_token, context or max_new_tokens.",
        "generation_loop",
    ),
    ("logit", "A token's score, any real number; a softmax makes it a share.", "decoding_policy"),
    ("policy", "Turns one row of logits into one token.", "decoding_policy"),
    ("greedy", "Takes the highest logit and draws no number.", "decoding_policy"),
    ("temperature", "Divides the logits: below 1 sharpens, above 1 flattens.", "decoding_policy"),
    ("top-k", "Keeps exactly the k likeliest tokens; ties go to the lower id.", "decoding_policy"),
    (
        "top-p",
        "Keeps the likeliest tokens until their probabilities reach p.",
        "decoding_policy",
    ),
    ("CDF", "Running sum of the probabilities in the order of token ids.", "decoding_policy"),
    (
        "generator state",
        "What decides the next uniform number; each sampled token moves it on once.",
        "decoding_policy",
    ),
    ("seed", "The number that the generator starts from.", "decoding_policy"),
    ("prefill", "One pass over all positions of the prompt.", "prefill_decode"),
    ("decode step", "One pass over one new token, which reads the cache.", "prefill_decode"),
    ("query", "What a token asks with: compared with keys, in its own pass only.", "kv_cache"),
    ("key", "What a query is compared with: one for each token, layer and head.", "kv_cache"),
    ("value", "What attention averages: one for each token, layer and head.", "kv_cache"),
    ("causal mask", "A query sees keys at its own position and before.", "prefill_decode"),
    (
        "KV cache",
        "Keys and values of consumed inputs, kept so that no pass makes them again.",
        "kv_cache",
    ),
    ("layer", "One round of attention and MLP; its output is the next one's input.", "decode_step"),
    ("head", "A part of a layer with queries, keys and values of its own.", "decode_step"),
    (
        "residual",
        "A token's row between the layers, to which attention and MLP add.",
        "decode_step",
    ),
    ("owner", "The request and the checkpoint that a cache belongs to.", "kv_cache"),
    ("digest", "A fingerprint of all weights: other weights, other digest.", "kv_cache"),
    ("position", "Place of an input, from 0: the number of inputs before it.", "positions"),
    ("context", "How many positions the decoder has rows for.", "positions"),
    ("full forward", "The whole prefix computed without a cache: the reference.", "equivalence"),
    ("tolerance", "The largest difference between both paths that passes.", "equivalence"),
    ("float32", "Numbers of 4 bytes, good for about 7 decimal digits.", "equivalence"),
    ("ulp", "One step between neighbouring floating-point numbers.", "equivalence"),
    ("payload", "Bytes of the valid keys and values, and nothing else.", "memory"),
    ("slot", "A place in a cache's arrays; with padding it is no position.", "batches"),
    (
        "stage",
        "One of the audit's six groups of checks; the first that fails names the culprit.",
        "audit",
    ),
    ("fault", "A single thing done wrong on purpose, switched on from outside.", "fault_lab"),
    ("guard", "A check that refuses a wrong cache before anything is computed.", "fault_lab"),
)
