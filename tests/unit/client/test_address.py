"""Where a server is, and whether a token may be sent there."""

from __future__ import annotations

import pytest

from fairlane.app import Fairlane, open_remote
from fairlane.client.remote import Remote
from fairlane.client.wire import Address, is_loopback
from fairlane.model.errors import Invalid, Refused
from tests.unit.client.scripted import TOKEN, Scripted

OK = {"schema": "fairlane/1", "ok": True}


@pytest.mark.parametrize(
    ("url", "host", "port", "prefix"),
    [
        ("http://127.0.0.1:7117", "127.0.0.1", 7117, "/api/v1"),
        ("http://localhost/", "localhost", 80, "/api/v1"),
        ("https://box.example/queue/", "box.example", 443, "/queue/api/v1"),
        ("http://[::1]:80/api/v1", "::1", 80, "/api/v1"),
    ],
)
def test_a_url_in_its_parts(url, host, port, prefix):
    found = Address.of(url)
    assert (found.host, found.port, found.prefix) == (host, port, prefix)


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:7117", "ftp://box", "http://", "http://box:many", "http://box:99999",
        "http://ana:secret@box", "http://box?token=secret", "http://box#x", "http://b\nox", "",
    ],
)  # fmt: skip
def test_other_urls_are_refused_and_no_secret_is_told(url):
    with pytest.raises(Invalid) as refused:
        Address.of(url)
    assert refused.value.error_code == "invalid_url"
    assert "secret" not in refused.value.message + refused.value.hint


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["localhost.example", "10.0.0.1", "0.0.0.0", "127.0.0.1.example"])
def test_other_machines(host, monkeypatch):
    monkeypatch.delenv("FAIRLANE_ALLOW_PLAIN_HTTP", raising=False)
    assert not is_loopback(host)
    with pytest.raises(Refused, match=f"not sent over plain HTTP to {host}") as refused:
        Remote(f"http://{host}:7117", TOKEN)
    assert "https" in refused.value.hint
    Remote(f"https://{host}:7117", TOKEN)
    Remote(f"http://{host}:7117")  # without a token nothing is given away
    monkeypatch.setenv("FAIRLANE_ALLOW_PLAIN_HTTP", "1")
    Remote(f"http://{host}:7117", TOKEN)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ümlaut"])
def test_what_is_no_token(token):
    with pytest.raises(Invalid, match="this is no token"):
        Remote("http://127.0.0.1:1", token)


def test_where_the_token_comes_from(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRLANE_HOME", str(tmp_path))
    monkeypatch.delenv("FAIRLANE_TOKEN", raising=False)
    kept = "t" * 43
    (tmp_path / "token").write_text(kept + "\n")
    (tmp_path / "token").chmod(0o600)
    with Scripted(OK) as server:
        for token, environment in ((None, ""), (None, "from-the-environment"), ("given", "x")):
            monkeypatch.setenv("FAIRLANE_TOKEN", environment)
            with Fairlane(server.url, token=token) as queue:
                queue.status()
    shown = [asked.headers["authorization"].split()[1] for asked in server.asked]
    assert shown == [kept, "from-the-environment", "given"]


def test_the_token_of_a_home_folder_is_not_for_other_machines(tmp_path, monkeypatch):
    monkeypatch.delenv("FAIRLANE_TOKEN", raising=False)
    (tmp_path / "token").write_text("t" * 43)
    (tmp_path / "token").chmod(0o600)
    away = open_remote("http://box.example:7117", home=tmp_path)  # else it would be refused
    assert "Authorization" not in away._wire._headers


def test_a_server_has_no_context(tmp_path):
    with pytest.raises(Invalid, match="db and clock are of a home folder"):
        Fairlane("http://127.0.0.1:1", db="sqlite:x")
    with Fairlane("http://127.0.0.1:1", token=TOKEN) as queue:
        with pytest.raises(Invalid, match="its context for itself"):
            _ = queue.context
        with pytest.raises(Invalid, match="no operation 'nothing'"):
            queue.ask("nothing")
