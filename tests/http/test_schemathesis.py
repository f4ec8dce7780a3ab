"""The server against its OpenAPI document: no 5xx, no answer beside it, bad input is 4xx."""

from __future__ import annotations

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
from tests.http.served import Server

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


@pytest.fixture(scope="module", autouse=True)
def something_to_ask_about(server):
    server.ask("POST", "/projects", {"name": "web"})
    server.ask("POST", "/groups", {"name": "release"})
    tasks = [{"id": f"t{number}", "prompt": "x"} for number in range(1, 9)]
    server.ask("POST", "/tasks", {"tasks": tasks})
    server.ask("POST", "/leases", {"limit": 2, "worker": "box1"})


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("operation", DESCRIBED, ids=lambda operation: operation.label)
def test_the_server_keeps_to_its_document(operation, mode, server: Server):
    url = f"http://127.0.0.1:{server.port}/api/v1"
    headers = {"Authorization": f"Bearer {server.token}"}

    @EXAMPLES
    @given(case=operation.as_strategy(generation_mode=mode))
    def keeps(case) -> None:
        if mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
            case.body.pop("wait", None)  # a good one waits
        reply = case.call(base_url=url, headers=headers)
        case.validate_response(reply, checks=CHECKS if bad_arrived(operation, reply) else KINDLY)
        if reply.status_code >= 400 and not reply.json().get("deferred"):
            assert set(reply.json()["error"]) == {"code", "message", "hint"}

    keeps()
