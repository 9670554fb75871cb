"""Test the segmentation of running text into sentences and words."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.data import TextError, iterate_unlabelled
from hf_xst.data.segmentation import paragraph_sentences, paragraphs, segment

WORDS = [
    ("Don't e-mail him, please.", "Don't | e-mail | him | , | please | ."),
    ("3.14 or 5,000 at 10:30, 1/2-3", "3.14 | or | 5,000 | at | 10:30 | , | 1/2-3"),
    ("the U.S. and e.g. this...", "the | U.S. | and | e.g. | this | ..."),
    ("Ask a.b@c.de or https://x.org/a?b=c, now", "Ask | a.b@c.de | or | https://x.org/a?b=c | , | now"),
    ("(“Yes”) -- $5 -5 #tag", "( | “ | Yes | ” | ) | -- | $ | 5 | - | 5 | # | tag"),
    ("l'eau l·l aujourd’hui", "l'eau | l·l | aujourd’hui"),
    ("किताब और हाँ", "किताब | और | हाँ"),
    ("می‌خواهم كتابٌ", "می‌خواهم | كتابٌ"),
    ("👩‍💻👍🏽🇩🇪!!", "👩‍💻 | 👍🏽 | 🇩🇪 | !!"),
    ("a\u200bb\u00a0c\u3000d", "a | b | c | d"),
    ("cafe\u0301 x\u00ady", "cafe\u0301 | x\u00ady"),
    ("", ""),
    (" \n", ""),
]
SENTENCES = [
    ("It rains. He left! Did he? Yes.", ["It rains .", "He left !", "Did he ?", "Yes ."]),
    ("“Really?” he said. “No.” She left.", ["“ Really ? ” he said .", "“ No . ”", "She left ."]),
    ("Am 3. Mai kam J. Smith. Ende", ["Am 3 . Mai kam J . Smith .", "Ende"]),
    ("In the U.S. The end. See p. 12.", ["In the U.S. The end .", "See p . 12 ."]),
    ("wait... what? in 1999. Then", ["wait ... what ? in 1999 .", "Then"]),
    ("这是书。我喜欢！好", ["这是书 。", "我喜欢 ！", "好"]),
    ("هل هذا؟ نعم. हाँ। ठीक।", ["هل هذا ؟", "نعم .", "हाँ ।", "ठीक ।"]),
    ("end.Next one", ["end.Next one"]),
    ("...", ["..."]),
    (". . a", [".", ". a"]),
]


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_words(text, words):
    assert " | ".join(word for sentence in segment(text) for word in sentence) == words


@pytest.mark.parametrize(("text", "sentences"), SENTENCES)
def test_sentences(text, sentences):
    assert [" ".join(words) for words in segment(text)] == sentences


def is_visible(character):
    return unicodedata.category(character)[0] in "LMNPS"


@given(st.text(max_size=80))
def test_only_white_space_is_lost(text):
    sentences = segment(text)
    assert all(sentences)
    words = [word for sentence in sentences for word in sentence]
    assert all(words)
    for word in words:
        skipped, _, text = text.partition(word)
        assert not any(map(is_visible, skipped))
    assert not any(map(is_visible, text))


@given(st.text(st.sampled_from("aB1.,!?'\" \n\t-।。"), max_size=60))
def test_text_can_be_restored_from_space_after(text):
    for paragraph in paragraphs(text):
        pieces = []
        for sentence in paragraph_sentences(paragraph):
            for word, misc in zip(sentence.words, sentence.column("misc"), strict=True):
                pieces.append(word if misc == "SpaceAfter=No" else f"{word} ")
        assert " ".join("".join(pieces).split()) == " ".join(paragraph.split())


def test_custom_segmenter():
    def halves(text):
        return [[text[:2], text[2:].strip()]]

    (sentence,) = paragraph_sentences("ab cd", halves)
    assert (sentence.words, sentence.text) == (["ab", "cd"], "ab cd")
    (sentence,) = paragraph_sentences("abcd", halves)
    assert sentence.column("misc") == ["SpaceAfter=No", "_"]
    sentences = list(paragraph_sentences("du pain. Oui", lambda text: [["de", "le", "pain", "."], ["Oui"]]))
    assert [sentence.text for sentence in sentences] == ["de le pain .", "Oui"]  # words not in the text
    assert [sentence.column("misc") for sentence in sentences] == [["_"] * 4, ["_"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([[]], "requires at least one word"),
        (["a b"], r"found 'a b': .* in a list"),
        ([["a\tb"]], r"found 'a\\tb' for form"),
        ([[""]], "found ''"),
    ],
)
def test_invalid_words_are_rejected(words, message):
    with pytest.raises(ValueError, match=message):
        list(paragraph_sentences("a b", lambda text: words))


def test_paragraphs_of_a_file_are_streamed(write):
    path = write("a.txt", "\ufeffOne\r\ntwo. Three\r\n \t\r\n\r\nFour")
    sentences = list(iterate_unlabelled(path, format="raw"))
    assert [sentence.words for sentence in sentences] == [["One", "two", "."], ["Three"], ["Four"]]
    assert [sentence.comments for sentence in sentences] == [
        ["# newpar", "# sent_id = a.txt:1", "# text = One two."],
        ["# sent_id = a.txt:2", "# text = Three"],
        ["# newpar", "# sent_id = a.txt:3", "# text = Four"],
    ]
    stream = iterate_unlabelled(write("b.txt", b"fine\n\n\xff"), format="raw")
    assert next(stream).words == ["fine"]
    with pytest.raises(TextError, match="expected UTF-8"):
        next(stream)
