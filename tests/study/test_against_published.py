"""The restated published procedure, the judge, and the page that shows both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

against_published = pytest.importorskip("against_published", reason="needs mpmath")

from hf_xst.structures import DependencyTreeCRF  # noqa: E402

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


def test_judge_and_determinants_agree_with_exact_sums_on_mild_scores():
    scores = torch.randn(6, 6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    tree = DependencyTreeCRF(scores[None])
    total, log_marginals = against_published.judge(scores)
    restated = against_published.published_log_marginals(scores, 0.0).exp()
    assert total == pytest.approx(float(tree.log_partition()), abs=1e-12)
    torch.testing.assert_close(log_marginals.exp(), tree.marginals()[0])
    torch.testing.assert_close(restated, tree.marginals()[0])


def test_the_constant_spoils_sharp_losses():
    found = against_published.sums(10.0, sentences=2, words=4)
    assert found["ours"] < 1e-10 < 1 < found["published"]


def test_the_page_is_made_from_the_committed_results():
    results = json.loads((RESULTS / "against_the_published_code.json").read_text(encoding="utf-8"))
    page = (RESULTS / "against_the_published_code.md").read_text(encoding="utf-8")
    assert page == against_published.page(results)
