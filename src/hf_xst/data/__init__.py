"""Read, validate and prepare treebanks, unlabelled text and word vectors."""

from hf_xst.data.conllu import read_conllu, write_conllu
from hf_xst.data.folders import DISTANT, LANGUAGES, NEARBY, SOURCES, treebank_files
from hf_xst.data.hub_text import is_hub_text, stream_from_hub
from hf_xst.data.labels import bio_alphabet, to_bio
from hf_xst.data.layout import TREEBANK_FEATURES, UPOS_TAGS, dataset_to_sentences, sentences_to_dataset
from hf_xst.data.preparation import GoldError, first_rows, hold_out, prepare, prepared_features
from hf_xst.data.sentence import ConlluError, ConlluSentence
from hf_xst.data.text import TextError, iterate_unlabelled, read_unlabelled
from hf_xst.data.treebanks import load_treebank, to_treebank_layout
from hf_xst.data.vectors import VectorError, WordVectors, read_vectors

__all__ = [
    "DISTANT",
    "LANGUAGES",
    "NEARBY",
    "SOURCES",
    "TREEBANK_FEATURES",
    "UPOS_TAGS",
    "ConlluError",
    "ConlluSentence",
    "GoldError",
    "TextError",
    "VectorError",
    "WordVectors",
    "bio_alphabet",
    "dataset_to_sentences",
    "first_rows",
    "hold_out",
    "is_hub_text",
    "iterate_unlabelled",
    "load_treebank",
    "prepare",
    "prepared_features",
    "read_conllu",
    "read_unlabelled",
    "read_vectors",
    "sentences_to_dataset",
    "stream_from_hub",
    "to_bio",
    "to_treebank_layout",
    "treebank_files",
    "write_conllu",
]
