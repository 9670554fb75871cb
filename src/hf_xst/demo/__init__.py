"""Invented languages for the demonstration, the tests and runs at scale: annotated, related, of any size."""

from __future__ import annotations

from hf_xst.demo.defaults import source_languages, target_language
from hf_xst.demo.languages import InventedLanguage, generate_language, write_conllu
from hf_xst.demo.settings import LanguageSettings
from hf_xst.demo.vectors import WordVectors

__all__ = [
    "InventedLanguage",
    "LanguageSettings",
    "WordVectors",
    "generate_language",
    "source_languages",
    "target_language",
    "write_conllu",
]
