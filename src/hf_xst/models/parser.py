"""The biaffine dependency parser (Dozat and Manning 2017)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from hf_xst.models.columns import TreeColumns
from hf_xst.models.configuration import BiaffineParserConfig
from hf_xst.models.modeling import StructuredModel, StructuredOutput
from hf_xst.numerics import at_least_single
from hf_xst.structures import DependencyTreeCRF
from hf_xst.structures.base import Structure


class BiaffineScorer(nn.Module):
    """Biaffine scores of unlabelled arcs and of labels (equations 5 to 9 of the paper).

    The dropout drops a channel for all words of a sentence at once.
    """

    def __init__(self, input_size: int, arc_size: int, label_size: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.sizes = [arc_size, arc_size, label_size, label_size]
        self.dropout = nn.Dropout1d(dropout)
        self.projection = nn.Linear(input_size, sum(self.sizes))
        self.arc_weight = nn.Parameter(torch.empty(arc_size, arc_size))
        self.arc_bias = nn.Parameter(torch.empty(arc_size))
        self.label_weight = nn.Parameter(torch.empty(label_size, labels, label_size))
        self.label_head = nn.Linear(label_size, labels)
        self.label_dependent = nn.Linear(label_size, labels, bias=False)

    def reset_parameters(self) -> None:
        """Initialise arc scores close to zero, as published, and label scores like `nn.Bilinear`."""
        nn.init.uniform_(self.arc_weight, -0.01, 0.01)
        nn.init.zeros_(self.arc_bias)
        bound = 1 / math.sqrt(self.label_weight.shape[0])
        nn.init.uniform_(self.label_weight, -bound, bound)

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Score the arcs, (B, N+1, N+1), and their labels, (B, N+1, N+1, L), from states (B, N+1, D)."""
        hidden = self.dropout(self.projection(states).relu().mT).mT
        arc_head, arc_dependent, label_head, label_dependent = torch.split(hidden, self.sizes, dim=-1)
        # arcs[h, d] = arc_head_h . U . arc_dependent_d + arc_head_h . u: (B, N+1, N+1)
        by_head = arc_head @ self.arc_weight  # (B, N+1, arc)
        arcs = by_head @ arc_dependent.mT + (arc_head @ self.arc_bias)[..., None]
        # pairs[h, d, l] = label_head_h . W_l . label_dependent_d, factored: first the head side for all
        # labels, (B, (N+1) * L, label), then one matrix product per sentence over all dependents. The dense
        # bilinear form over all pairs gives the same numbers at many times the cost (scripts/benchmark.py).
        batch, nodes, _ = states.shape
        label_size, labels, _ = self.label_weight.shape
        by_label = (label_head @ self.label_weight.reshape(label_size, -1)).view(batch, nodes * labels, -1)
        pairs = (by_label @ label_dependent.mT).view(batch, nodes, labels, nodes).transpose(2, 3)
        single = self.label_head(label_head)[:, :, None] + self.label_dependent(label_dependent)[:, None]
        return at_least_single(arcs), at_least_single(pairs + single)


class BiaffineParser(TreeColumns, StructuredModel):  # type: ignore[no-untyped-call, unused-ignore]
    """A dependency parser: words in, a distribution over labelled trees out.

    Its `labels` are relations. The output `scores` are (B, N+1, N+1, L) as `DependencyTreeCRF` takes them;
    gold `labels` are (B, N, 2), head and label of each word.
    """

    config_class = BiaffineParserConfig
    config: BiaffineParserConfig
    leading, trailing = 1, 0
    label_column = "deprel"
    main_metric = "las"

    def __init__(self, config: BiaffineParserConfig) -> None:
        super().__init__(config)
        self.scorer = BiaffineScorer(
            self.encoder.output_size,
            config.arc_size,
            config.label_size,
            len(config.labels),
            config.output_dropout,
        )
        self.post_init()  # type: ignore[no-untyped-call, unused-ignore]

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, BiaffineScorer):
            module.reset_parameters()

    def label_parameters(self) -> list[tuple[nn.Module, str, tuple[int, ...]]]:
        """Return the parameters of the label scores."""
        scorer = self.scorer
        return [
            (scorer, "label_weight", (1,)),
            (scorer.label_head, "weight", (0,)),
            (scorer.label_head, "bias", (0,)),
            (scorer.label_dependent, "weight", (0,)),
        ]

    def scores(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Score labelled arcs: (B, N+1, N+1, L); see `score_form` of the configuration."""
        arcs: Tensor
        labels: Tensor
        arcs, labels = self.scorer(states)
        if self.config.score_form == "raw":
            return arcs[..., None] + labels
        return self._head_log_probs(arcs, lengths)[..., None] + labels.log_softmax(-1)

    @staticmethod
    def _head_log_probs(arcs: Tensor, lengths: Tensor) -> Tensor:
        """Normalise over each word's possible heads; impossible arcs get the lowest finite number."""
        nodes = torch.arange(arcs.shape[1], device=arcs.device)
        possible = (nodes <= lengths[:, None])[:, :, None] & (nodes[:, None] != nodes)
        return arcs.masked_fill(~possible, torch.finfo(arcs.dtype).min).log_softmax(1)

    def supervised_losses(self, output: StructuredOutput, labels: Tensor) -> Tensor:
        """Return the cross-entropy of heads plus that of labels given the gold head, summed over words: (B,).

        Of the labels (B, N, 2), words with head -1 are ignored; those with label -1 only contribute the head.
        """
        heads, gold_labels = labels.unbind(-1)
        index = heads.clamp(min=0)[:, None]  # (B, 1, N)
        label_index = index[..., None].expand(-1, -1, -1, output.scores.shape[-1])
        from_gold = output.scores[:, :, 1:].gather(1, label_index)[:, 0]  # (B, N, L): arcs from gold heads
        if self.config.score_form == "raw":
            any_label = output.scores.logsumexp(-1)
            head_log_probs = self._head_log_probs(any_label, output.lengths)
            head_term = head_log_probs[:, :, 1:].gather(1, index)[:, 0]
        else:
            head_term = from_gold.logsumexp(-1)
        label_term = from_gold.log_softmax(-1).gather(-1, gold_labels.clamp(min=0)[..., None])[..., 0]
        loss = -(head_term + label_term * (gold_labels >= 0))
        return torch.where(heads >= 0, loss, 0.0).sum(-1)

    def units(self, labels: Tensor) -> Tensor:
        """Count the words with a known head: (B,)."""
        return (labels[..., 0] >= 0).sum(-1)

    def distribution(self, output: StructuredOutput) -> Structure:
        """Return the distribution over labelled trees."""
        trees = DependencyTreeCRF(
            output.scores,
            output.lengths,
            single_root=self.config.single_root,
            projective=self.config.projective,
        )
        return self.with_label_rules(trees)
