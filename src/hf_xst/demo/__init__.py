"""Invented languages for the demonstration, the tests and runs at scale: annotated, related, of any size."""

from __future__ import annotations

from hf_xst.demo.languages import TARGET, InventedLanguage, as_sentence, generate_language, write_languages
from hf_xst.demo.settings import LanguageSettings, source_languages, target_language

__all__ = [
    "TARGET",
    "InventedLanguage",
    "LanguageSettings",
    "as_sentence",
    "generate_language",
    "source_languages",
    "target_language",
    "write_languages",
]
