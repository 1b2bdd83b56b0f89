"""Make the golden logits: Hugging Face's GPT-2, with the weights of tinydec checkpoints.

From the top folder, in an environment with benchmarks/requirements.txt (`make bench` builds
one in .venv-bench):

    .venv-bench/bin/python -m tests.golden.make_logits assets/frozen.safetensors

It writes, beside itself and with the same bytes each time on one machine:

- frozen_logits.json: the 16 controlled prefixes of the given checkpoint, float64 and float32
- random_logits.json: small random decoders (see `CASES`), float64
- hugging_face/NAME/: config.json and model.safetensors as `save_pretrained` writes them,
  and logits.json with the logits of that very model

Without an argument it makes the last two alone. Each file says which checkpoint (digest) and
which versions made it.
"""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

from tests.random_models import random_checkpoint
from tinydec.corpus import training_sequences
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint

HERE = Path(__file__).resolve().parent
CONTROLLED = 4  # longest prefix of a controlled pattern

#: Sizes are unequal primes; every option that a config has is on in one case and off in another.
CASES = {
    "biases, tied head, tanh GELU": (ModelConfig(13, 11, 15, 3, 3, 23), 11),
    "no biases, separate head, exact GELU": (
        ModelConfig(17, 5, 14, 2, 2, 19, 1e-3, "gelu", False, False),
        12,
    ),
    "width above 32, biases, separate head, tanh GELU": (
        ModelConfig(11, 3, 35, 1, 5, 13, 1e-5, "gelu_new", True, False),
        13,
    ),
    "no biases, tied head, exact GELU, seven heads": (
        ModelConfig(19, 13, 21, 1, 7, 5, 1e-5, "gelu", False, True),
        14,
    ),
}
#: What `save_pretrained` writes out; attention biases are always there.
SAVED = {
    "tied_head": (ModelConfig(11, 7, 6, 2, 2, 13), 21),
    "separate_head": (ModelConfig(13, 5, 6, 1, 3, 7, 1e-3, "gelu", True, False), 22),
}


def hugging_face_model(checkpoint: Checkpoint, dtype: torch.dtype) -> Any:
    """Return a GPT2LMHeadModel with a checkpoint's weights; biases it lacks are zeros."""
    config = checkpoint.config
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=config.vocab_size,
            n_positions=config.n_positions,
            n_embd=config.n_embd,
            n_layer=config.n_layer,
            n_head=config.n_head,
            n_inner=config.n_inner,
            layer_norm_epsilon=config.layer_norm_epsilon,
            activation_function=config.activation_function,
            tie_word_embeddings=config.tie_word_embeddings,
            bos_token_id=checkpoint.vocabulary.bos_id,
            eos_token_id=checkpoint.vocabulary.eos_id,
            attn_implementation="eager",
        )
    ).to(dtype)
    given = {name: torch.from_numpy(array.copy()) for name, array in checkpoint.tensors.items()}
    given.setdefault("lm_head.weight", given["wte.weight"])
    state = {}
    for name, tensor in model.state_dict().items():
        short = name.removeprefix("transformer.")
        is_bias = not config.attention_bias and ".attn." in name and name.endswith(".bias")
        state[name] = torch.zeros_like(tensor) if is_bias else given.pop(short)
    if given:
        raise SystemExit(f"expected every tensor to be used, found left over: {sorted(given)}")
    model.load_state_dict(state, strict=True)
    return model.eval()


def logits_of(model: Any, ids: list[int]) -> list[list[float]]:
    """Return the logits (T, V) of one sequence; floats in the shortest form of their dtype."""
    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0].numpy()
    return [[float(str(value)) for value in row] for row in logits]


def provenance() -> dict[str, str]:
    return {
        "made_by": "python -m tests.golden.make_logits",
        "oracle": "transformers.GPT2LMHeadModel, eager attention, no cache, one thread, CPU",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def write(path: Path, values: dict[str, Any]) -> None:
    """Write JSON; every list of plain numbers stands on one line."""
    text = json.dumps(values, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+([-\d.e\s,]+?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)
    path.write_text(text + "\n", encoding="utf-8")


def frozen(path: Path) -> dict[str, Any]:
    checkpoint = load_checkpoint(path)
    single = hugging_face_model(checkpoint.cast("float32"), torch.float32)
    double = hugging_face_model(checkpoint.cast("float64"), torch.float64)
    prefixes = []
    for sequence in training_sequences():
        for length in range(1, CONTROLLED + 1):
            ids = list(checkpoint.vocabulary.encode(sequence[:length]))
            prefixes.append(
                {
                    "pattern": " ".join(sequence[1:-1]),
                    "length": length,
                    "token_ids": ids,
                    "float64": logits_of(double, ids),
                    "float32": logits_of(single, ids),
                }
            )
    return {
        **provenance(),
        "checkpoint": path.name,
        "checkpoint_digest": checkpoint.digest,
        "prefixes": prefixes,
    }


def context_ids(config: ModelConfig, seed: int) -> list[int]:
    """Return ids that fill the context; neighbours differ."""
    return [(seed + 3 * place) % config.vocab_size for place in range(config.n_positions)]


def random_cases() -> dict[str, Any]:
    cases = []
    for name, (config, seed) in CASES.items():
        checkpoint = random_checkpoint(config, seed)
        ids = context_ids(config, seed)
        cases.append(
            {
                "name": name,
                "config": config.to_dict(),
                "seed": seed,
                "checkpoint_digest": checkpoint.digest,
                "token_ids": ids,
                "float64": logits_of(hugging_face_model(checkpoint, torch.float64), ids),
            }
        )
    return {**provenance(), "weights": "tests.random_models.random_checkpoint", "cases": cases}


def save_pretrained(name: str, config: ModelConfig, seed: int) -> None:
    folder = HERE / "hugging_face" / name
    shutil.rmtree(folder, ignore_errors=True)
    model = hugging_face_model(random_checkpoint(config, seed, "float32"), torch.float32)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "model.safetensors").chmod(0o644)
    ids = context_ids(config, seed)
    write(
        folder / "logits.json",
        {
            **provenance(),
            "seed": seed,
            "checkpoint_digest": load_checkpoint(folder / "model.safetensors").digest,
            "token_ids": ids,
            "float64": logits_of(model.double(), ids),
        },
    )


def main(paths: list[str]) -> None:
    torch.set_num_threads(1)
    for path in paths:
        write(HERE / "frozen_logits.json", frozen(Path(path)))
    write(HERE / "random_logits.json", random_cases())
    for name, (config, seed) in SAVED.items():
        save_pretrained(name, config, seed)


if __name__ == "__main__":
    main(sys.argv[1:])
