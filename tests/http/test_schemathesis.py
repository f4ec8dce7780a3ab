"""The server against its OpenAPI document, asked by its owner, by attempts and by strangers.

No 5xx, no answer beside the document, bad input is 4xx.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema  # type: ignore[import-untyped]
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from fairlane.http.openapi import openapi
from fairlane.service.operations.table import OPERATIONS
from tests.http.served import Server, serving

pytestmark = pytest.mark.slow
CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance,
    response_headers_conformance, response_schema_conformance, negative_data_rejection,
    unsupported_method,
]  # fmt: skip
KINDLY = [check for check in CHECKS if check is not negative_data_rejection]
#: The document that the server gives: another test looks that it does.
API = schemathesis.openapi.from_dict(openapi())
DESCRIBED = [found.ok() for found in API.get_all_operations() if isinstance(found, Ok)]
#: Examples of one sort for one operation; the same in every run.
EXAMPLES = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


def test_the_whole_document_is_understood():
    assert len(DESCRIBED) == sum(len(methods) for methods in openapi()["paths"].values())


def bad_arrived(operation: Any, reply: Any) -> bool:
    """Whether what was made bad was sent: a list without entries and a header are not."""
    if reply.request.body is not None:
        return True
    schemas = {each.name: each.definition["schema"] for each in operation.query}
    query = parse_qs(urlsplit(reply.request.url).query, keep_blank_values=True)
    for name, values in query.items():
        whole = schemas.get(name, {}).get("type") == "integer" and values[0].isdecimal()
        value: object = int(values[0]) if whole else values[0]
        if name not in schemas or not is_valid(value, schemas[name]):
            return True
    return False


def is_valid(value: object, schema: dict[str, Any]) -> bool:
    one = schema.get("items", schema)
    return bool(jsonschema.Draft202012Validator(one).is_valid(value))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that its owner asks everything."""
    with serving(tmp_path_factory.mktemp("home")) as found:
        fill(found)
        found.ask("POST", "/leases", {"limit": 2, "worker": "box1"})
        yield found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that attempts and strangers ask."""
    with serving(tmp_path_factory.mktemp("home")) as found:
        fill(found)
        found.ask("PATCH", "/policy", {"caps.all": 1000})
        yield found


def fill(server: Server) -> None:
    """Something to ask about."""
    server.ask("POST", "/projects", {"name": "web"})
    server.ask("POST", "/groups", {"name": "release"})
    tasks = [{"id": f"t{number}", "prompt": "x"} for number in range(1, 9)]
    server.ask("POST", "/tasks", {"tasks": tasks})


def badge(server: Server) -> str:
    """The token of a new attempt."""
    server.ask("POST", "/tasks", {"tasks": [{"prompt": "x"}]})
    lease = server.ask("POST", "/leases", {"limit": 1, "worker": "box1"})["leases"][0]["lease"]
    return str(server.ask("POST", f"/leases/{lease}/token")["token"])


MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


def hold_to_document(
    server: Server, operation: Any, mode: GenerationMode, token: str | None, how: settings
) -> set[int]:
    """Ask an operation what fits its document, or what does not; the statuses of the answers."""
    url = f"http://127.0.0.1:{server.port}/api/v1"
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    statuses = set()

    @how
    @given(case=operation.as_strategy(generation_mode=mode))
    def keeps(case) -> None:
        if mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
            case.body.pop("wait", None)  # a good one waits
        reply = case.call(base_url=url, headers=headers)
        case.validate_response(reply, checks=CHECKS if bad_arrived(operation, reply) else KINDLY)
        if reply.status_code >= 400 and not reply.json().get("deferred"):
            assert set(reply.json()["error"]) == {"code", "message", "hint"}
        statuses.add(reply.status_code)

    keeps()
    return statuses


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("operation", DESCRIBED, ids=lambda operation: operation.label)
def test_the_server_keeps_to_its_document(operation, mode, server: Server):
    hold_to_document(server, operation, mode, server.token, EXAMPLES)


def may(operation: Any) -> bool:
    """Whether an attempt may ask this of something that is its own."""
    name = operation.definition.raw["operationId"]
    right = OPERATIONS[name].attempt if name in OPERATIONS else ""
    return right in ("lease", "task", "children")


@pytest.mark.parametrize("operation", DESCRIBED, ids=lambda operation: operation.label)
def test_attempts_and_strangers_get_what_the_document_says(operation, guarded: Server):
    few, good = settings(EXAMPLES, max_examples=3), GenerationMode.POSITIVE
    assert hold_to_document(guarded, operation, good, None, few) == {401}
    for mode in MODES if may(operation) else [good]:  # others are refused before it is read
        statuses = hold_to_document(guarded, operation, mode, badge(guarded), few)
        assert may(operation) or min(statuses) >= 400


@pytest.mark.soak(seconds=120)
def test_nobody_finds_anything_in_a_long_time(tmp_path, soak_seconds_left):
    with serving(tmp_path) as server:
        fill(server)
        server.ask("PATCH", "/policy", {"caps.all": 10**6})
        for number, operation in enumerate(cycle(DESCRIBED)):
            if soak_seconds_left() <= 0:
                break
            how = settings(EXAMPLES, max_examples=20, derandomize=False)
            mode = MODES[number // len(DESCRIBED) % 2]
            server.call("POST", "/api/v1/resume", {})  # the owner may have paused all
            owner = hold_to_document(server, operation, mode, server.token, how)
            assert owner
            assert hold_to_document(server, operation, mode, None, how) == {401}
