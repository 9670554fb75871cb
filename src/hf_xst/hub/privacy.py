"""Search files for private content before they are pushed: secrets, paths, names, training sentences.

Entities, Unicode forms, case and invisible characters make no difference. Secrets of a known format are found
by detect-secrets.
"""

from __future__ import annotations

import getpass
import html
import mmap
import os
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import BasePlugin
from huggingface_hub import get_token

from hf_xst.charts.dataset import load_charts
from hf_xst.console import say
from hf_xst.data import load_treebank
from hf_xst.hub.texts import WORD_LISTS, Text, texts_of
from hf_xst.records import read_yaml

# Plugins that also match digests, version numbers and words in capitals.
_UNUSED = ("Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector", "ArtifactoryDetector")
# Tokens that detect-secrets does not know; searched for in the numbers of weights, too.
_TOKEN = re.compile(
    rb"(?<![A-Za-z0-9])(?:hf_|api_org_)[A-Za-z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}"
    rb"|AIza[\w-]{35}|BEGIN ENCRYPTED PRIVATE KEY|PuTTY-User-Key-File"
)
_SECRET_VARIABLE = re.compile(r".*(PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL).*|(.*_)?(KEY|TOKEN)", re.I)
_MIN_SECRET, _MIN_LETTERS_ONLY = 8, 16  # shorter values may be common words
_PATH = re.compile(
    r"(?<![\w./~<-])(?<!\]\()/[\w.@+-]+/[^\s\"'`<>|)\]}},;]+"
    r"|(?<!\w)[a-z]:\\+\w[^\\\s\"'`<>|]*\\[^\s\"'`<>|]+|(?<![\w\\])\\\\[\w.-]+\\[\w$.-]+"
    r"|(?<![\w/~])(?:~[\w.-]*/|\$\{?home\}?/|%(?:userprofile|homepath)%\\)[^\s\"'`<>|)\]},;]+"
    r"|file:/{2,3}[^\s\"'`<>]+|^(?:/[^/\0\n]+/|[a-z]:[\\/]).*$",  # the last: whole lines, with spaces
    re.M,
)
_EMAIL = re.compile(r"(?<![\w.+/-])(?!git@)[\w.+-]+@(?!example\.)(?:[\w-]+\.)+[a-z]{2,}")
# Common account names that identify nobody.
_GENERIC_USERS = frozenset("root user admin ubuntu test tester runner docker jovyan app".split())
_USER_VARIABLES, _MIN_USER_NAME = ("USER", "LOGNAME", "SUDO_USER", "USERNAME"), 3
# A run of words is private if it is this long. Of 644 READMEs, 2 have such a run of five words in common with
# 50,000 words of English treebanks, 12 one of four. A wide letter, as in Chinese, counts three.
_RUN, _MIN_LETTERS, _WIDE_LETTER = 5, 24, 3
_KEY_LENGTH = _MIN_LETTERS // _WIDE_LETTER


def visible(text: str) -> str:
    """Decode entities, percent signs and Unicode forms, and remove invisible characters."""
    text = unquote(html.unescape(html.unescape(text))).replace("\\_", "_")
    return unicodedata.normalize("NFKC", text.translate(_invisible()))


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text.casefold())


@cache
def _invisible() -> dict[int, None]:
    return dict.fromkeys(n for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)) == "Cf")


@cache
def _plugins() -> list[BasePlugin]:
    classes: Mapping[str, type[BasePlugin]] = get_mapping_from_secret_type_to_class()
    return [each() for each in classes.values() if each.__name__ not in _UNUSED]


def find_secret(text: str) -> str | None:
    """Return the type of the first secret of a known format in a text, or None; nothing is sent anywhere."""
    if _TOKEN.search(text.encode("utf-8", "surrogatepass")):
        return "a token"
    for line in text.splitlines():
        for plugin in _plugins():
            if any(plugin.analyze_string(line)):
                return f"a secret ({plugin.secret_type})"
    return None


@dataclass(frozen=True)
class Secrets:
    """What is private on this machine.

    Attributes:
        strings: strings that are allowed nowhere, with a description.
        users: user names, allowed in lists of words only.
        sentences: training sentences; runs of their words are allowed nowhere.
        allowed: texts that a person wants to publish.
        unused: variables with secrets too short to be searched for.
    """

    strings: Mapping[str, str]
    users: frozenset[str] = frozenset()
    sentences: Sequence[Sequence[str]] = ()
    allowed: Sequence[str] = ()
    unused: Sequence[str] = ()

    @classmethod
    def collect(cls, folder: Path, account: str, token: str | None = None, **further: Any) -> Secrets:
        """Collect what is private when a folder is pushed to an account, whose name is public.

        `token` is added to that of the login; `further` are sentences and allowed texts.
        """
        home = Path.home()
        paths = {home: "home folder", Path.cwd(): "working folder", folder.resolve(): "folder's own path"}
        strings = {str(path): f"the {name}" for path, name in paths.items() if len(path.parts) > 2}
        secret = {name: value for name, value in os.environ.items() if _SECRET_VARIABLE.fullmatch(name)}
        unused = [name for name, value in secret.items() if value and _is_common(value)]
        strings |= {value: f"the value of {name}" for name, value in secret.items() if not _is_common(value)}
        strings |= {value: "a token" for value in (get_token(), token) if value}
        users = {home.name, *(os.environ.get(key, "") for key in _USER_VARIABLES)}
        with suppress(KeyError, OSError):  # the user of a container may have no entry
            users.add(getpass.getuser())
        public = _GENERIC_USERS | {account.lower()}
        users = {name for name in users if len(name) >= _MIN_USER_NAME and name.lower() not in public}
        return cls(strings, frozenset(users), unused=unused, **further)

    def find_in(self, files: Mapping[str, Path]) -> list[str]:
        """Search files, given by their names in the repository, and list `FILE: LEAK` without duplicates."""
        leaks: list[str] = []
        letters: dict[str, list[str]] = defaultdict(list)
        for name, path in files.items():
            found = dict.fromkeys(self._in_bytes(path))
            try:
                for text in texts_of(path):
                    content = self._comparable(text.content)
                    if not text.is_reordered:
                        found |= dict.fromkeys(self._in_text(text, content))
                    if not self.sentences:
                        continue
                    lines = content.splitlines() if text.is_words else [content]
                    letters[name] += filter(_is_long, map(_letters, lines))
            except (ValueError, OSError) as error:
                found[f"not a valid {path.suffix.removeprefix('.')} file ({str(error)[:80]})"] = None
            leaks += [f"{name}: {leak}" for leak in found]
        joined = {name: "\n".join(lines) for name, lines in letters.items()}
        return leaks + [f"{name}: a training sentence ({run}...)" for name, run in self._runs_in(joined)]

    def notes(self) -> list[str]:
        """Describe what is searched for, and what is not."""
        names = sorted(set(self.strings.values()) - {"a token"})
        searched = [f"tokens and keys (detect-secrets {version('detect-secrets')})", *names]
        searched += ["user names", "paths", "e-mail addresses"]
        missing = [
            "pixels of pictures",
            f"names and paths in lists of words ({', '.join(sorted(WORD_LISTS))})",
        ]
        missing += [f"the value of {name}, which is short" for name in self.unused]
        if self.sentences:
            short = sum(not any(_runs(words)) for words in self.sentences)
            searched.append(f"{len(self.sentences) - short:,} training sentences, {_RUN} words in a row")
            missing += [f"{short:,} training sentences, which are too short"] * bool(short)
        else:
            missing.append("training sentences")
        missing += [f"{text} (--allow)" for text in self.allowed]
        return [f"searched for: {'; '.join(searched)}", f"not searched for: {'; '.join(missing)}"]

    def _comparable(self, content: str) -> str:
        content = visible(content)
        for text in self.allowed:
            content = re.sub(re.escape(visible(text)), " ", content, flags=re.I)
        return content

    def _in_bytes(self, path: Path) -> Iterator[str]:
        if path.stat().st_size:
            with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                if _TOKEN.search(content):
                    yield "a token"
                yield from (name for text, name in self.strings.items() if content.find(text.encode()) >= 0)

    def _in_text(self, text: Text, content: str) -> Iterator[str]:
        folded = _fold(content)
        yield from (name for secret, name in self.strings.items() if _fold(visible(secret)) in folded)
        if text.is_words:
            return
        if secret := find_secret(content):
            yield secret
            return  # the rest could show parts of it
        for pattern, name in ((_PATH, "an absolute path"), (_EMAIL, "an e-mail address")):
            if match := pattern.search(folded):
                yield f"{name} ({match[0] if len(match[0]) <= 60 else f'{match[0][:57]}...'})"
        for name in self.users:
            if re.search(rf"(?<!\w){re.escape(_fold(name))}(?!\w)", folded):
                yield f"the user name {name}"
        if ";base64," in folded:
            yield "embedded data in base64, which cannot be searched"

    def _runs_in(self, letters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the files that contain a run of words of a training sentence, with its beginning."""
        places: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for name, text in letters.items():
            for start in range(len(text) - _KEY_LENGTH + 1):
                places[text[start : start + _KEY_LENGTH]].append((name, start))
        found: dict[str, str] = {}
        for run in (run for words in self.sentences for run in _runs(words)):
            for name, start in places.get(run[:_KEY_LENGTH], ()):
                if letters[name].startswith(run, start):
                    found.setdefault(name, run[:_MIN_LETTERS])
        yield from found.items()


def _is_common(value: str) -> bool:
    return len(value) < (_MIN_LETTERS_ONLY if value.isalpha() else _MIN_SECRET)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, _fold(text)))


def _is_long(letters: str) -> bool:
    wide = 0 if letters.isascii() else sum(unicodedata.east_asian_width(each) in "WF" for each in letters)
    return len(letters) + (_WIDE_LETTER - 1) * wide >= _MIN_LETTERS


def _runs(words: Iterable[str]) -> Iterator[str]:
    """Yield the letters of the shortest private run of words from each word on; a run may lack the last."""
    parts = [letters for word in words if (letters := _letters(visible(word)))]
    fewest = min(_RUN, len(parts) - 1) if len(parts) > 2 else len(parts)
    for start in range(len(parts) - fewest + 1):
        end = start + fewest
        run = "".join(parts[start:end])
        while not _is_long(run) and end < len(parts):
            run, end = run + parts[end], end + 1
        if _is_long(run):
            yield run


def training_sentences(folder: Path, *, unsearched: bool = False) -> list[list[str]]:
    """Read the sentences that the model in a folder was trained, tuned or tested on.

    Args:
        folder: output of train-source or transfer; `run/config.yaml` and, after `evaluate`,
            `run/evaluate-config.yaml` record where the sentences are.
        unsearched: warn about sentences that are unknown or cannot be read, instead of raising an error.

    Returns:
        Lists of words.

    Raises:
        ValueError: sentences are unknown or cannot be read.
    """
    paths = [folder / "run/config.yaml", folder / "run/evaluate-config.yaml"]
    problems, sentences = [], []
    if not paths[0].is_file():
        problems.append("the training data is not recorded (run/config.yaml is missing)")
    for path in filter(Path.is_file, paths):
        options = read_yaml(path)
        for key in filter(options.get, ("charts", "treebank", "dev_treebank")):
            try:
                sentences += _words_of(key, options)
            except (ValueError, OSError) as error:
                reason = " ".join(str(error).split())
                problems.append(f"the sentences of {key} {options[key]} cannot be read any more ({reason})")
    for problem in problems:
        message = f"{problem}, so the files cannot be searched for training sentences"
        if not unsearched:
            raise ValueError(f"{message}; restore them, or push without this search by --unsearched")
        say(message, "yellow")
    return sentences


def _words_of(key: str, options: Mapping[str, Any]) -> list[list[str]]:
    if key == "charts":
        return list(load_charts(options[key])[0]["words"])
    splits = load_treebank(options[key], data_roots=options.get("data") or ()).values()
    return [words for rows in splits for words in rows["words" if "words" in rows.column_names else "tokens"]]
