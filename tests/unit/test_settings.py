"""Settings: every key is optional, and a wrong one is named."""

from __future__ import annotations

import os

import pytest

from fairlane.model.errors import Invalid
from fairlane.model.instant import MINUTE, SECOND
from fairlane.settings import AgentSettings, Settings

WHOLE = """
agent = "mine"
[store]
url = "sqlite:/tmp/x.db"
[worker]
name = "box"
slots = 8
labels = ["gpu", "os=linux"]
executor = "tmux"
[agents.mine]
argv = ["mine", "{prompt}"]
parser = "claude"
pool = "house"
permissions = "full"
model = "large"
stop = ["10s", "5s"]
grace = "1m"
env = { KEY = "secret" }
[agents.claude]
pool = "second"
[pools.second]
env = { DIR = "x" }
[workspaces]
mode = "pool"
commit = "none"
folder = "w"
[[notify]]
on = ["parked", "cooldown"]
command = ["notify-send", "x"]
[[notify]]
url = "http://localhost/x"
secret = "s"
[[source]]
type = "jsonl"
path = "tasks.jsonl"
every = "5m"
write_back = true
project = "web"
kinds = { bug = "fix" }
[server]
host = "0.0.0.0"
port = 9000
page = false
[log]
level = "debug"
max_bytes = 1000
mask = ["sk-[a-z]+"]
"""


def test_every_key_is_read(tmp_path):
    path = tmp_path / "fairlane.toml"
    path.write_text(WHOLE)
    found = Settings.load(path)
    assert (found.agent, found.store.url) == ("mine", "sqlite:/tmp/x.db")
    assert (found.worker.slots, found.worker.labels) == (8, ("gpu", "os=linux"))
    assert found.agents["mine"] == AgentSettings(
        argv=("mine", "{prompt}"),
        parser="claude",
        pool="house",
        permissions="full",
        model="large",
        stop=(10 * SECOND, 5 * SECOND),
        grace=MINUTE,
        env={"KEY": "secret"},
    )
    assert [found.agent_pool(name) for name in ("mine", "claude", "codex", "shell", None)] == [
        "house",
        "second",
        "openai",
        None,
        None,
    ]
    assert {"mine", "shell", "opencode", "demo"} <= set(found.known_agents())
    assert set(found.known_pools()) == {"demo", "google", "house", "openai", "second"}
    assert found.notify[0].on == ("parked", "cooldown")
    assert found.source[0].every == 5 * MINUTE
    assert (found.server.port, found.server.page) == (9000, False)
    assert found.log.mask == ("sk-[a-z]+",)
    assert "secret" not in repr(found.agents)


def test_no_file_sets_nothing(tmp_path):
    found = Settings.load(tmp_path / "none.toml")
    assert found == Settings()
    assert found.worker.name == os.uname().nodename
    assert (found.worker.slots, found.worker.executor) == (None, "process")
    assert found.log.max_bytes == 64 * 1024 * 1024


REFUSED = {
    "section": ("[wroker]", "unknown key 'wroker'", "Did you mean 'worker'?"),
    "key": ("[worker]\nslot = 1", "unknown key 'worker.slot'", "Did you mean 'slots'?"),
    "agent key": ("[agents.x]\nargs = []", "unknown key 'agents.x.args'", "'argv'"),
    "slots": ("worker.slots = -1", "worker.slots: -1 is out of range", "from 0 to 1000000"),
    "slots text": ('worker.slots = "4"', "worker.slots: not a whole number: '4'", "from 0 to"),
    "labels": ('worker.labels = "gpu"', "worker.labels: not a list: 'gpu'", '["a", "b"]'),
    "label twice": ('worker.labels = ["a", "a"]', "worker.labels: 'a' appears twice", ""),
    "mode": ('workspaces.mode = "tree"', "'tree' is none of worktree, pool, shared", "worktree"),
    "permissions": ('agents.x.permissions = "all"', "'all' is none of read, edit, full", ""),
    "stop": ('agents.x.stop = ["1s"]', "agents.x.stop: not two durations", '["10s", "5s"]'),
    "argv": ("agents.x.argv = []", "agents.x.argv: a command without a program", "notify-send"),
    "mask": ('log.mask = ["("]', "log.mask: not a regular expression: '('", ""),
    "port": ("server.port = 70000", "server.port: 70000 is out of range", "from 0 to 65535"),
    "page": ("server.page = 1", "server.page: not true or false: 1", "true or false"),
    "table": ("worker = 3", "worker: not a table: 3", "[worker]"),
    "named table": ("agents = 3", "agents: not a table: 3", "[agents]"),
    "list": ("[notify]", "notify: not a list of tables", "[[notify]]"),
    "notify": (
        '[[notify]]\non = "parked"',
        "notify[0] needs a command or a url",
        "Add command or url.",
    ),
    "check timeout": ('[checks]\ntimeout = "0s"', "checks.timeout: not longer than 0s", "30s"),
    "check sandbox": ('[checks]\nsandbox = "x"', "checks.sandbox: not a table: 'x'", "{ key"),
    "notify on": ('[[notify]]\nurl = "http://x"\non = ["ended"]', "'ended' is none of parked", ""),
    "notify empty": (
        '[[notify]]\nurl = "http://x"\non = []',
        "notify[0].on: an empty list",
        "parked",
    ),
    "source": ('[[source]]\npath = "x"', "source[0] has no type", ""),
    "source both": ('[[source]]\ntype = "jsonl"', "source[0] needs a path or a command", ""),
    "every": ('[[source]]\ntype = "a"\nevery = "x"', "every: not a duration: 'x'", "30s"),
    "not toml": ("worker.slots = ", "not TOML", "text needs quotes"),
}


@pytest.mark.parametrize(("text", "said", "hint"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_key_is_named(tmp_path, text, said, hint):
    path = tmp_path / "fairlane.toml"
    path.write_text(text)
    with pytest.raises(Invalid) as refused:
        Settings.load(path)
    assert refused.value.message.startswith(f"{path}: ")
    assert said in refused.value.message
    assert hint in refused.value.hint
    assert refused.value.error_code == "invalid_settings"


def test_secrets_are_not_told():
    secret = {"notify": [{"url": "x", "secret": 12345}]}
    for table in ({"agents": {"x": {"env": {"KEY": 12345}}}}, secret):
        with pytest.raises(Invalid) as refused:
            Settings.parse(table)
        assert "12345" not in str(refused.value.document())


def test_what_cannot_be_read_is_refused(tmp_path):
    path = tmp_path / "fairlane.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(Invalid, match="it is not UTF-8 text"):
        Settings.load(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(Invalid, match="cannot be read"):
        Settings.load(path)
