"""The command that annotates files: CoNLL-U, tokenised or running text in; CoNLL-U, JSON or trees out."""

from __future__ import annotations

from hf_xst.hub.outputs import FORMS
from hf_xst.training.annotation import Annotator, Form
from hf_xst.training.arguments import PredictArguments as PredictArguments
from hf_xst.training.jobs.predict import predict as write_predictions


def predict(arguments: PredictArguments) -> None:
    """Annotate; see `hf_xst.training.jobs.predict.predict`."""
    write_predictions(arguments, _form)


def _form(annotator: Annotator, name: str) -> Form:
    return FORMS[name](annotator)
