"""Dependencies: declared, bounded, consistent, permissive, and without known vulnerabilities."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.tidy.repository import ROOT, files, read

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ADVISORIES = tomllib.loads((ROOT / "tests/tidy/advisories.toml").read_text())["advisory"]
EXTRAS = ("server", "page", "mcp")
#: Imported, but not by what is installed for users, or as a part of a package that is declared.
ALLOWED = {
    "pytest": "the public suites in fairlane.testing are for authors, who have it",
    "hypothesis": "the public suites in fairlane.testing are for authors, who have it",
    "anyio": "comes with starlette and mcp, which are built on it",
    "mcp-types": "comes with mcp, in the same version",
}
IMPORT = re.compile(r"^ *(?:from|import) (\w+)(?:$|[.,]\S| import | as )", re.MULTILINE)
PERMISSIVE = re.compile(r"(?i)\b(?:MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Unlicense)\b")


def declared() -> dict[str, Requirement]:
    """What users install, with all extras, by its name."""
    lines = list(PROJECT["dependencies"])
    lines += [line for extra in EXTRAS for line in PROJECT["optional-dependencies"][extra]]
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(each.name): each for each in found if each.name != "fairlane"}


def wanted(name: str, extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
    """What a package asks for on this machine."""
    for line in distribution(name).requires or []:
        need = Requirement(line)
        extra_of = [{"extra": extra} for extra in ("", *extras)]
        if need.marker is None or any(need.marker.evaluate(each) for each in extra_of):
            yield need


def closure() -> dict[str, list[Requirement]]:
    """Everything that users get, with what asks for it."""
    found: dict[str, list[Requirement]] = {}
    waiting = list(declared().values())
    while waiting:
        need = waiting.pop()
        name = canonicalize_name(need.name)
        if need not in found.setdefault(name, []):
            found[name].append(need)
            waiting += wanted(name, frozenset(need.extras))
    return found


def bound(need: Requirement) -> Version | None:
    """The lowest version that is allowed; None: any."""
    lows = [Version(each.version) for each in need.specifier if each.operator in (">=", "==", "~=")]
    return max(lows, default=None)


def imported() -> dict[str, str]:
    """Every package that the source imports, with one file that does."""
    found: dict[str, str] = {}
    for path in files():
        if not (path.startswith("src/") and path.endswith(".py")):
            continue
        found |= dict.fromkeys(IMPORT.findall(read(path)), path)
    return found


def test_what_is_imported_is_declared() -> None:
    known = {"fairlane", *sys.stdlib_module_names}
    for name in (*declared(), *ALLOWED):
        known |= {file.parts[0].removesuffix(".py") for file in distribution(name).files or ()}
    for module, path in imported().items():
        assert module in known, f"{path} imports {module}, which nobody declares"


def test_every_dependency_has_a_lower_bound() -> None:
    assert [name for name, need in declared().items() if bound(need) is None] == []


@pytest.mark.parametrize("advisory", ADVISORIES, ids=lambda each: str(each["id"]))
def test_no_version_with_a_known_vulnerability_is_allowed_or_installed(advisory) -> None:
    name, fixed = canonicalize_name(advisory["package"]), Version(advisory["fixed"])
    need = declared().get(name)
    if need is not None:
        low = bound(need)
        assert low is not None
        assert low >= fixed, f"pyproject.toml allows {need}, see {advisory['id']}"
    try:
        installed = Version(distribution(name).version)
    except PackageNotFoundError:
        return
    assert installed >= fixed, f"{name} {installed} is installed, see {advisory['id']}"


def test_what_is_installed_fits_together() -> None:
    for name, needs in closure().items():
        version = distribution(name).version
        for need in needs:
            assert need.specifier.contains(version, prereleases=True), f"{name} {version}: {need}"


def test_licences_are_permissive() -> None:
    for name in closure():
        about = distribution(name).metadata
        keys = ("License-Expression", "License", "Classifier")
        words = [each for key in keys for each in about.get_all(key) or []]
        words = [each[:200] for each in words if not each.startswith(("Programming", "Topic"))]
        assert PERMISSIVE.search(" ".join(words)), f"{name}: {words}"
