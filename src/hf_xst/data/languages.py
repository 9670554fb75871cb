"""The languages of the paper's experiments, with their treebanks of UD 2.2 in the paper's order."""

from __future__ import annotations

from typing import NamedTuple


class Language(NamedTuple):
    """A language as the experiments know it.

    Attributes:
        code: the code that its treebanks' files begin with.
        name: its name in English, as in the treebanks' folder names.
        treebanks: the names of the treebanks that are joined, in this order.
    """

    code: str
    name: str
    treebanks: tuple[str, ...]


LANGUAGES = {
    language.code: language
    for language in (
        Language("fa", "Persian", ("Seraji",)),
        Language("ar", "Arabic", ("PADT",)),
        Language("id", "Indonesian", ("GSD",)),
        Language("ko", "Korean", ("GSD", "Kaist")),
        Language("tr", "Turkish", ("IMST",)),
        Language("hi", "Hindi", ("HDTB",)),
        Language("hr", "Croatian", ("SET",)),
        Language("he", "Hebrew", ("HTB",)),
        Language("bg", "Bulgarian", ("BTB",)),
        Language("it", "Italian", ("ISDT",)),
        Language("pt", "Portuguese", ("Bosque", "GSD")),
        Language("fr", "French", ("GSD",)),
        Language("es", "Spanish", ("GSD", "AnCora")),
        Language("no", "Norwegian", ("Bokmaal", "Nynorsk")),
        Language("da", "Danish", ("DDT",)),
        Language("sv", "Swedish", ("Talbanken",)),
        Language("nl", "Dutch", ("Alpino", "LassySmall")),
        Language("de", "German", ("GSD",)),
        Language("en", "English", ("EWT",)),
    )
}
SOURCES = ("en", "ar", "es", "fr", "de")
DISTANT = ("fa", "ar", "id", "ko", "tr", "hi", "hr", "he")
NEARBY = ("bg", "it", "pt", "fr", "es", "no", "da", "sv", "nl", "de")
