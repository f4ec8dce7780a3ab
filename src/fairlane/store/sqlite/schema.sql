-- For reading: the tables as all migrations together leave them; a test compares the two.
-- Rows are values; every rule that must never be broken is a CHECK.

CREATE TABLE key_values (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL                       -- JSON
) WITHOUT ROWID;

CREATE TABLE numbers (
    name TEXT PRIMARY KEY,
    next INTEGER NOT NULL CHECK (next > 0)    -- never returns
) WITHOUT ROWID;

CREATE TABLE changes (
    version INTEGER PRIMARY KEY,              -- one more with every transaction that wrote
    what TEXT                                 -- JSON; NULL: anything
);

CREATE TABLE projects (
    name TEXT PRIMARY KEY,
    clock INTEGER,
    present INTEGER NOT NULL DEFAULT 0 CHECK (present IN (0, 1)),
    body TEXT NOT NULL                        -- JSON
) WITHOUT ROWID;

CREATE TABLE groups (
    name TEXT PRIMARY KEY,
    parent TEXT,
    priority INTEGER,
    title TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;

CREATE TABLE lanes (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,                 -- JSON of the lane's key
    ready INTEGER NOT NULL CHECK (ready >= 0)
);
CREATE INDEX lanes_ready ON lanes (id) WHERE ready > 0;

CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL REFERENCES projects (name),
    kind TEXT NOT NULL,
    status TEXT NOT NULL
        CHECK (status IN ('queued', 'leased', 'running', 'done', 'parked', 'canceled')),
    lane INTEGER REFERENCES lanes (id),       -- where it stands when it is ready
    wait TEXT NOT NULL DEFAULT '',            -- what it waits for first
    due_at INTEGER,
    created_at INTEGER NOT NULL,
    ready_since INTEGER,
    ended_at INTEGER,
    estimate INTEGER,
    priority INTEGER NOT NULL,
    depth INTEGER NOT NULL CHECK (depth >= 0),
    failures INTEGER NOT NULL CHECK (failures >= 0),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    agent TEXT,
    pool TEXT,
    in_group TEXT,
    parent TEXT,
    facts TEXT NOT NULL,                      -- JSON: what else has happened to it
    body TEXT NOT NULL,                       -- JSON: what else it says
    prompt TEXT NOT NULL,
    CHECK ((lane IS NOT NULL) = (status = 'queued' AND wait = '')),
    CHECK (lane IS NULL OR ready_since IS NOT NULL),
    CHECK (wait = '' OR status = 'queued'),
    CHECK ((ended_at IS NOT NULL) = (status IN ('done', 'canceled')))
);
-- The queue in both orders, with all that planning asks of a task.
CREATE INDEX tasks_lane_ready ON tasks (lane, ready_since, seq, created_at, estimate, id)
    WHERE lane IS NOT NULL;
CREATE INDEX tasks_lane_created ON tasks (lane, created_at, seq, ready_since, estimate, id)
    WHERE lane IS NOT NULL;
CREATE INDEX tasks_wait ON tasks (wait, seq) WHERE wait <> '';
CREATE INDEX tasks_wait_due ON tasks (wait, due_at) WHERE wait <> '' AND due_at IS NOT NULL;
CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tasks_live ON tasks (status, seq) WHERE status IN ('leased', 'running', 'parked');
CREATE INDEX tasks_ended ON tasks (ended_at)
    WHERE ended_at IS NOT NULL AND body <> '{"meta":{"compacted":true}}';
CREATE INDEX tasks_group ON tasks (in_group, seq) WHERE in_group IS NOT NULL;
CREATE INDEX tasks_parent ON tasks (parent, seq) WHERE parent IS NOT NULL;

CREATE TABLE needs (
    needed TEXT NOT NULL,                     -- a task's id
    task INTEGER NOT NULL REFERENCES tasks (seq),
    PRIMARY KEY (needed, task)
) WITHOUT ROWID;

CREATE TABLE tallies (
    status TEXT NOT NULL,
    wait TEXT NOT NULL,
    project TEXT NOT NULL,
    kind TEXT NOT NULL,
    count INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (status, wait, project, kind)
) WITHOUT ROWID;

CREATE TABLE attempts (
    fence INTEGER PRIMARY KEY,                -- grows with every lease, never repeats
    lease TEXT NOT NULL UNIQUE,
    task TEXT NOT NULL REFERENCES tasks (id),
    project TEXT NOT NULL,
    kind TEXT NOT NULL,
    agent TEXT,
    number INTEGER NOT NULL,
    worker TEXT,
    leased_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER,
    outcome TEXT,
    input INTEGER NOT NULL DEFAULT 0,
    output INTEGER NOT NULL DEFAULT 0,
    cache_read INTEGER NOT NULL DEFAULT 0,
    cache_write INTEGER NOT NULL DEFAULT 0,
    usd INTEGER,
    body TEXT NOT NULL,                       -- JSON: everything else
    UNIQUE (task, number),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
-- One holder: a task has at most one attempt whose lease has not ended.
CREATE UNIQUE INDEX attempts_open ON attempts (task) WHERE ended_at IS NULL;
CREATE INDEX attempts_ended ON attempts (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX attempts_used ON attempts (project, kind, agent, ended_at)
    WHERE ended_at IS NOT NULL AND input + output + cache_write + cache_read > 0;

CREATE TABLE history (
    project TEXT NOT NULL,
    kind TEXT NOT NULL,
    agent TEXT NOT NULL,                      -- '' = none
    estimate INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    usd INTEGER NOT NULL,
    PRIMARY KEY (project, kind, agent)
) WITHOUT ROWID;

CREATE TABLE usage (
    scope TEXT NOT NULL,
    minute INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    usd INTEGER NOT NULL,
    starts INTEGER NOT NULL,
    completions INTEGER NOT NULL,
    PRIMARY KEY (scope, minute)
) WITHOUT ROWID;

CREATE TABLE pools (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE workers (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pauses (scope TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    task TEXT,
    project TEXT,
    data TEXT NOT NULL                        -- JSON
);
CREATE INDEX events_task ON events (task, number) WHERE task IS NOT NULL;

CREATE TABLE policies (digest TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE decisions (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    base INTEGER NOT NULL,
    policy TEXT NOT NULL REFERENCES policies (digest),
    planner INTEGER NOT NULL,
    lanes BLOB NOT NULL,
    rest BLOB NOT NULL,
    plan BLOB NOT NULL,
    digests TEXT NOT NULL
);
