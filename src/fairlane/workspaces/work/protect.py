"""Protected files: those that say whether work is right; a change there is marked.

A project names them (`protect`). Where it names none, they are what its checks run, and what runs
elsewhere for the repository (CI).
"""

from __future__ import annotations

import posixpath
import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence

from fairlane.workspaces.work.changes import Change, links
from fairlane.workspaces.work.reading import Reader

#: Most paths that are named.
NAMED_MAX = 1000
#: Most links that are followed, and bytes of where one leads.
LINKS_MAX, _TARGET_MAX = 100, 4096
#: What runs by itself for a repository.
CI = (
    ".github", ".gitlab-ci.yml", ".gitlab", ".circleci", ".ci", ".travis.yml", ".buildkite",
    ".azure-pipelines", "azure-pipelines.yml", "Jenkinsfile", ".drone.yml", ".woodpecker",
    ".woodpecker.yml", ".teamcity", "bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml",
    ".cirrus.yml", ".tekton", ".forgejo", ".gitea", ".pre-commit-config.yaml",
)  # fmt: skip
_PYTHON = (
    "tox.ini", "noxfile.py", "pyproject.toml", "setup.cfg", "pytest.ini", ".pytest.ini",
    "conftest.py", "mypy.ini", "ruff.toml", ".ruff.toml", ".flake8",
)  # fmt: skip
_MAKE = ("Makefile", "GNUmakefile", "*.mk")
_NODE = (
    "package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", "jest.config.*", "vitest.config.*",
    "vite.config.*", ".mocharc.*", "eslint.config.*", ".eslintrc*", "tsconfig.json",
)  # fmt: skip
_GRADLE = ("build.gradle*", "settings.gradle*", "gradlew", "gradle.properties", "gradle/wrapper")
#: A word of a command -> the files that say what it does.
_FILES_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("make", "gmake"), _MAKE),
    **dict.fromkeys(("npm", "yarn", "pnpm", "npx", "bun", "node", "jest", "vitest"), _NODE),
    **dict.fromkeys(("tox", "nox", "pytest", "uv", "poetry", "hatch", "ruff", "mypy"), _PYTHON),
    **dict.fromkeys(("gradle", "gradlew"), _GRADLE),
    **dict.fromkeys(("mvn", "mvnw"), ("pom.xml", "mvnw", ".mvn")),
    **dict.fromkeys(("cmake", "ctest"), ("CMakeLists.txt", "CMakePresets.json")),
    **dict.fromkeys(("rake", "bundle", "rspec"), ("Rakefile", "Gemfile", ".rspec")),
    **dict.fromkeys(("bazel", "bazelisk"), ("BUILD", "BUILD.bazel", "WORKSPACE", "*.bzl")),
    "just": ("justfile", ".justfile"),
    "task": ("Taskfile.y*ml",),
    "cargo": ("Cargo.toml", "build.rs", ".cargo"),
    "go": ("go.mod",),
    "dotnet": ("*.csproj", "*.sln", "Directory.Build.*"),
    "mix": ("mix.exs",),
    "composer": ("composer.json",),
    "deno": ("deno.json*",),
    "pre-commit": (".pre-commit-config.yaml",),
}


class Protection:
    """Looks at changes one after the other, and remembers those of protected files."""

    def __init__(self, globs: Sequence[str] | None, commands: Iterable[Sequence[str]]) -> None:
        words = [] if globs is not None else [word for row in commands for word in _words(row)]
        by_default = (*CI, *(name for word in words for name in _files_of(word)))
        plain = [_plain(name) for name in (by_default if globs is None else globs) if name]
        texts = [_pattern(name) for name in plain]
        self._globs = tuple(name.removeprefix("/") for name in plain if "/" in name)
        self._pattern = re.compile("|".join(texts) or "(?!)", re.DOTALL)  # (?!): nothing
        self._files = {_plain(posixpath.normpath(word)) for word in words}  # not what is below
        self._below: set[str] = set()  # what protected links lead to
        self.paths: list[str] = []

    def leads(self, link: str) -> list[str]:
        """What is protected at a link: `""` stands for itself, and the rest lies behind it."""
        before = f"{_plain(link)}/"
        behind = [name.removeprefix(before[:-1]) for name in self._files if name.startswith(before)]
        return ["", *behind] if self.protects(link) else behind

    def add(self, name: str) -> None:
        """One more file, or a folder with all that is below it."""
        self._below.add(_plain(name))

    def look(self, row: Change) -> None:
        """A change of a protected file, by its old name or its new one, is remembered."""
        names = [name for name in (row.old_path, row.path) if name is not None]
        if len(self.paths) < NAMED_MAX and any(self.protects(n) or self._holds(n) for n in names):
            self.paths += [name for name in names if name not in self.paths]

    def _holds(self, name: str) -> bool:
        """Whether one of them lies below: in a submodule, or behind a link."""
        return any(each.startswith(f"{_plain(name)}/") for each in (*self._files, *self._globs))

    def protects(self, name: str) -> bool:
        """Whether a file, or a folder, is one of them."""
        return _plain(name) in self._files or self.fits(name)

    def fits(self, name: str) -> bool:
        """The same, but not by a word of a command: that may be what the command makes."""
        plain = _plain(name)
        is_below = any(plain == end or plain.startswith(f"{end}/") for end in self._below)
        return is_below or self._pattern.fullmatch(plain) is not None


def follow_links(reader: Reader, commit: str, protection: Protection) -> None:
    """What a protected link of a commit leads to is protected, too; also by another link."""
    left = links(reader, commit)
    for _ in range(LINKS_MAX):
        name = next((name for name in left if protection.leads(name)), None)
        if name is None:
            return
        with reader.output("cat-file", "blob", left.pop(name)) as pipe:
            target = pipe.read(_TARGET_MAX).decode("utf-8", "replace")
        end = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if not end.startswith(("/", "..")):
            for rest in protection.leads(name):
                protection.add(f"{end}{rest}")


def _files_of(word: str) -> tuple[str, ...]:
    """The files that say what a program does; a flag is no program."""
    return _FILES_OF.get(posixpath.basename(word), ())


def _words(command: Sequence[str]) -> list[str]:
    """The words of a command, also those of a line for a shell, wherever it stands."""
    words = list(command)
    for word in words:  # it grows: a line can hold another one
        parts = _split(word)
        if parts != [word]:
            words += parts
    return words


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _plain(name: str) -> str:
    """Some file systems know no case, and know one letter in two forms."""
    return unicodedata.normalize("NFC", name).casefold()


def _pattern(glob: str) -> str:
    """As in .gitignore: without a slash at any depth; a folder stands for all below it."""
    body = glob.removesuffix("/**").rstrip("/")
    anchored = "/" in glob.rstrip("/")
    text, at = "" if anchored else "(?:.*/)?", 0
    body = body.removeprefix("/")
    while at < len(body):
        end = body.find("]", at + 2) if body[at] == "[" else -1
        if body.startswith("**/", at):
            text, at = f"{text}(?:.*/)?", at + 3
        elif body.startswith("**", at):
            text, at = f"{text}.*", at + 2
        elif end > 0:
            text, at = f"{text}{_letters(body[at + 1 : end])}", end + 1
        else:
            text += {"*": "[^/]*", "?": "[^/]"}.get(body[at]) or re.escape(body[at])
            at += 1
    return f"{text}(?:/.*)?"


def _letters(inside: str) -> str:
    """`[a-c]`, `[!x]`."""
    sign = "^" if inside.startswith("!") else ""
    kept = re.escape(inside.removeprefix("!")).replace(r"\-", "-")
    return f"[{sign}{kept}]"
