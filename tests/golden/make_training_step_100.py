"""Make the golden training step: PyTorch trains Hugging Face's GPT-2 from the same start.

From the top folder, in an environment with benchmarks/requirements.txt (`make bench` builds
one in .venv-bench):

    .venv-bench/bin/python -m tests.golden.make_training_step_100

It writes training_step_100.safetensors beside itself: the float64 tensors after 100 updates, and
under the metadata key `provenance` the settings and versions that made them. Forward, gradients
(autograd) and optimiser (AdamW) are PyTorch's; from tinydec come only the settings, the corpus
and the order in which the seed draws the initial tensors, spelled out again here.
"""

import json
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

from tinydec.corpus import TOKENS, training_sequences
from tinydec.training import DEFAULT

OUT = Path(__file__).resolve().with_name("training_step_100.safetensors")
STEPS = 100
D, MLP, LAYERS, POSITIONS = 4, 8, 2, 4


def initial() -> dict[str, torch.Tensor]:
    """Draw the matrices in reading order: embeddings, then each layer from input to output."""
    rng = np.random.default_rng(DEFAULT.seed)
    shapes = {"wte": (len(TOKENS), D), "wpe": (POSITIONS, D)}
    for layer in range(LAYERS):
        shapes |= {
            f"h.{layer}.attn.c_attn": (D, 3 * D),
            f"h.{layer}.attn.c_proj": (D, D),
            f"h.{layer}.mlp.c_fc": (D, MLP),
            f"h.{layer}.mlp.c_proj": (MLP, D),
        }
    scale = DEFAULT.initial_scale
    return {f"{n}.weight": torch.from_numpy(rng.normal(0, scale, s)) for n, s in shapes.items()}


def build() -> transformers.GPT2LMHeadModel:
    """Return the float64 model; norms start at 1 and 0, attention biases stay 0."""
    config = transformers.GPT2Config(
        vocab_size=len(TOKENS),
        n_positions=POSITIONS,
        n_embd=D,
        n_layer=LAYERS,
        n_head=2,
        n_inner=MLP,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=1,
        attn_implementation="eager",
    )
    model = transformers.GPT2LMHeadModel(config).double()
    matrices = initial()
    with torch.no_grad():
        for name, parameter in model.transformer.named_parameters():
            if name in matrices:
                parameter.copy_(matrices.pop(name))
            else:
                norm_weight = "ln_" in name and name.endswith("weight")
                parameter.fill_(1.0 if norm_weight else 0.0)
            parameter.requires_grad = ".attn." not in name or not name.endswith("bias")
    if matrices:
        raise RuntimeError(f"expected these in the model, found none: {list(matrices)}")
    return model


def main() -> None:
    """Train for 100 steps and write the file."""
    torch.set_num_threads(1)
    model = build()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(
        trained,
        lr=DEFAULT.learning_rate,
        betas=DEFAULT.betas,
        eps=DEFAULT.epsilon,
        weight_decay=DEFAULT.weight_decay,
    )
    ids = torch.tensor([[TOKENS.index(t) for t in s] for s in training_sequences()])
    for _ in range(STEPS):
        logits = model(ids[:, :-1]).logits.flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    tensors = {
        name: parameter.detach().numpy()
        for name, parameter in model.transformer.named_parameters()
        if parameter.requires_grad
    }
    provenance = {
        "settings": DEFAULT.to_dict(),
        "step": STEPS,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    save_file(tensors, OUT, metadata={"provenance": json.dumps(provenance, sort_keys=True)})
    OUT.chmod(0o644)


if __name__ == "__main__":
    main()
