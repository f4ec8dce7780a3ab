-- A small database in the form of agent-queue: two projects, 3 : 1, with what they used.
-- Times are seconds; 1769774400 is 2026-01-30T12:00:00Z.
CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    credit_weight REAL NOT NULL DEFAULT 1.0,
    max_concurrent_agents INTEGER NOT NULL DEFAULT 2,
    status TEXT NOT NULL DEFAULT 'ACTIVE',
    budget_limit INTEGER
);
CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    parent_task_id TEXT,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    priority INTEGER NOT NULL DEFAULT 100,
    status TEXT NOT NULL DEFAULT 'DEFINED',
    retry_count INTEGER NOT NULL DEFAULT 0,
    max_retries INTEGER NOT NULL DEFAULT 3,
    preferred_workspace_id TEXT,
    agent_type TEXT,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);
CREATE TABLE task_dependencies (
    task_id TEXT NOT NULL,
    depends_on_task_id TEXT NOT NULL,
    PRIMARY KEY (task_id, depends_on_task_id)
);
CREATE TABLE token_ledger (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    tokens_used INTEGER NOT NULL,
    timestamp REAL NOT NULL
);
CREATE TABLE agents (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    agent_type TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'IDLE'
);

INSERT INTO projects VALUES
    ('a', 'Project A', 3.0, 2, 'ACTIVE', NULL),
    ('b', 'Project B', 1.0, 2, 'ACTIVE', 50000);

INSERT INTO tasks VALUES
    ('a-1', 'a', NULL, 'Login form', 'Write the login form.', 100, 'COMPLETED', 0, 3, NULL, 'claude',
     1769763600, 1769767200),
    ('b-1', 'b', NULL, 'Import', 'Write the importer.', 100, 'COMPLETED', 0, 3, NULL, 'claude',
     1769763600, 1769767200),
    ('b-2', 'b', NULL, 'Export', 'Write the exporter.', 10, 'READY', 0, 3, NULL, 'claude',
     1769763600, 1769763600),
    ('a-2', 'a', NULL, 'Sign out', 'Write the button that ends a session.', 100, 'READY', 0, 3,
     NULL, 'claude', 1769767200, 1769767200),
    ('a-3', 'a', NULL, 'Test them', 'Test login and sign out.', 100, 'DEFINED', 0, 3, NULL,
     'claude', 1769767200, 1769767200),
    ('b-3', 'b', NULL, 'Tidy up', 'Remove the old importer.', 100, 'BLOCKED', 3, 3, NULL, 'claude',
     1769763600, 1769767200);

INSERT INTO task_dependencies VALUES ('a-3', 'a-1'), ('a-3', 'a-2');

INSERT INTO token_ledger VALUES
    ('l-1', 'a', 'agent-1', 'a-1', 1000, 1769767200),
    ('l-2', 'b', 'agent-2', 'b-1', 500, 1769767200);

INSERT INTO agents VALUES
    ('agent-1', 'One', 'claude', 'IDLE'),
    ('agent-2', 'Two', 'claude', 'IDLE'),
    ('agent-3', 'Three', 'claude', 'IDLE');
