"""The formula of each named tensor, as plain text and as LaTeX, and a sentence about it."""

from __future__ import annotations

from typing import NamedTuple


class Formula(NamedTuple):
    """One tensor's arithmetic.

    Attributes:
        text: plain text with the tensors' names.
        latex: without dollar signs.
        meaning: one sentence for a reader who sees it for the first time.
    """

    text: str
    latex: str
    meaning: str


_NORM = r"y_i = \dfrac{x_i-\mu}{\sqrt{\sigma^2+\varepsilon}}\,w_i+b_i"
_NORM_TEXT = "(x[i] − mean) / sqrt(variance + ε) · weight[i] + bias[i]"
_BIAS = (" + bias[c]", " + b_c")

_FORMULAS: dict[str, Formula] = {
    "token_embedding": Formula(
        "wte.weight[token id, i]",
        r"e_i = W^{\text{wte}}_{\text{id},\,i}",
        "The token id picks a row of the token table.",
    ),
    "position_embedding": Formula(
        "wpe.weight[position, i]",
        r"p_i = W^{\text{wpe}}_{\text{position},\,i}",
        "The position picks a row of the position table.",
    ),
    "embedding": Formula(
        "token_embedding[i] + position_embedding[i]",
        r"x_i = e_i + p_i",
        "What the token is plus where it stands: the residual stream begins here.",
    ),
    "ln_1": Formula(
        _NORM_TEXT,
        _NORM,
        "The row that enters the layer, brought to mean 0 and variance 1, then scaled and shifted.",
    ),
    "q": Formula(
        "Σ ln_1[i] · c_attn.weight[i, c]",
        r"q_j = \sum_i x_i\,W^{Q}_{i,\,j}",
        "The query: what this position asks the positions before it.",
    ),
    "k": Formula(
        "Σ ln_1[i] · c_attn.weight[i, c]",
        r"k_j = \sum_i x_i\,W^{K}_{i,\,j}",
        "The key: what this position answers to queries.",
    ),
    "v": Formula(
        "Σ ln_1[i] · c_attn.weight[i, c]",
        r"v_j = \sum_i x_i\,W^{V}_{i,\,j}",
        "The value: what this position hands on when it is attended to.",
    ),
    "keys": Formula(
        "k[slot, j], as it was appended",
        r"K_{s,\,j} = k^{(s)}_j",
        "The key of that position, computed once and kept.",
    ),
    "values": Formula(
        "v[slot, j], as it was appended",
        r"V_{s,\,j} = v^{(s)}_j",
        "The value of that position, computed once and kept.",
    ),
    "scores": Formula(
        "Σ q[j] · keys[s, j] / sqrt(d_h)",
        r"s = \dfrac{q \cdot k_s}{\sqrt{d_h}}",
        "How well the query fits the key of one position.",
    ),
    "hidden": Formula(
        "−∞ where the key lies ahead of the query",
        r"s = -\infty \quad (\text{key} > \text{query})",
        "A position may not look ahead: its score is −∞, so its weight is 0.",
    ),
    "attention": Formula(
        "exp(scores[s] − max) / Σ exp(scores − max)",
        r"a_s = \dfrac{e^{\,s_s-\max}}{\sum_r e^{\,s_r-\max}}",
        "The scores as shares that add up to 1.",
    ),
    "mix": Formula(
        "Σ attention[s] · values[s, j]",
        r"m_j = \sum_s a_s\,V_{s,\,j}",
        "The values of all visible positions, weighted by attention.",
    ),
    "attn_output": Formula(
        "Σ mix[head, j] · attn.c_proj.weight[head · d_h + j, c]",
        r"o_c = \sum_{h,\,j} m_{h,\,j}\,W^{O}_{h d_h + j,\,c}",
        "The mixes of all heads side by side, through one matrix.",
    ),
    "residual_mid": Formula(
        "stream[i] + attn_output[i]",
        r"y_i = x_i + o_i",
        "Attention adds to the residual stream; it replaces nothing.",
    ),
    "ln_2": Formula(
        _NORM_TEXT,
        _NORM,
        "The stream after attention, normed again for the MLP.",
    ),
    "mlp_hidden": Formula(
        "Σ ln_2[i] · c_fc.weight[i, c]",
        r"u_c = \sum_i x_i\,W^{\text{fc}}_{i,\,c}",
        "The MLP's wide row, before its activation.",
    ),
    "gelu_new": Formula(
        "x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))",
        r"g = \tfrac{x}{2}\Big(1+\tanh\big(\sqrt{2/\pi}\,(x+0.044715\,x^3)\big)\Big)",
        "GELU in its tanh form: negative numbers fade to 0, positive ones pass.",
    ),
    "gelu": Formula(
        "x/2 · (1 + erf(x / √2))",
        r"g = \tfrac{x}{2}\Big(1+\operatorname{erf}\big(x/\sqrt 2\big)\Big)",
        "Exact GELU: negative numbers fade to 0, positive ones pass.",
    ),
    "mlp_output": Formula(
        "Σ mlp_activation[i] · mlp.c_proj.weight[i, c]",
        r"z_c = \sum_i g_i\,W^{\text{proj}}_{i,\,c}",
        "The wide row brought back to the width of the stream.",
    ),
    "residual": Formula(
        "residual_mid[i] + mlp_output[i]",
        r"x'_i = y_i + z_i",
        "The MLP adds to the stream, and the layer is done.",
    ),
    "ln_f": Formula(
        _NORM_TEXT,
        _NORM,
        "The last layer's output, normed once more before the output head.",
    ),
    "logits": Formula(
        "Σ ln_f[i] · wte.weight[token, i]",
        r"\ell_t = \sum_i x_i\,W^{\text{wte}}_{t,\,i}",
        "How well the last row fits each token's own embedding.",
    ),
    "logits_untied": Formula(
        "Σ ln_f[i] · lm_head.weight[token, i]",
        r"\ell_t = \sum_i x_i\,W^{\text{head}}_{t,\,i}",
        "How well the last row fits each token's row of the output head.",
    ),
}


def formula(name: str, *, bias: bool = False) -> Formula:
    """Return a tensor's formula, with its bias where there is one.

    Raises:
        KeyError: no tensor and no variant has that name.
    """
    found = _FORMULAS[name]
    if not bias:
        return found
    return found._replace(text=found.text + _BIAS[0], latex=found.latex + _BIAS[1])
