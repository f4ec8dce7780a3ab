-- Every statement by name, in the order in which one meets them.

-- name: task
SELECT {task} FROM tasks WHERE id = ?
-- name: tasks
SELECT {task} FROM tasks WHERE id IN (SELECT value FROM json_each(?))
-- name: statuses
SELECT id, status FROM tasks WHERE id IN (SELECT value FROM json_each(?))
-- name: in_flight
SELECT {task} FROM tasks INDEXED BY tasks_live
WHERE status IN ('leased', 'running', 'parked') AND status IN ('leased', 'running') ORDER BY seq
-- name: due
SELECT {task} FROM tasks WHERE due_at <= ? ORDER BY due_at, seq LIMIT ?
-- name: next_due
SELECT min(due_at) FROM tasks WHERE due_at IS NOT NULL
-- name: dependents
SELECT t.id FROM needs n JOIN tasks t ON t.seq = n.task
WHERE n.needed = ? AND t.status = 'queued' ORDER BY t.seq
-- name: any_need
SELECT 1 FROM needs WHERE needed >= '' LIMIT 1
-- name: children
SELECT count(*) FROM tasks WHERE parent = ?
-- name: tallies
SELECT status, wait, project, kind, count FROM tallies WHERE count > 0
ORDER BY status, wait, project, kind
-- name: numbers
SELECT name, next FROM numbers
-- name: version
SELECT max(version) FROM changes
-- name: changes
SELECT version, what FROM changes WHERE version >= ? ORDER BY version
-- name: put_changes
INSERT INTO changes (version, what) VALUES (?, ?)
-- name: drop_changes
DELETE FROM changes WHERE version <= ?

-- name: lanes
SELECT id, key, ready FROM lanes WHERE ready > 0 ORDER BY id
-- name: lane
SELECT id, key, ready FROM lanes WHERE key = ? AND ready > 0
-- name: window_ready
SELECT id, seq, created_at, ready_since, estimate FROM tasks
WHERE lane = ? ORDER BY ready_since, seq LIMIT ?
-- name: window_created
SELECT id, seq, created_at, ready_since, estimate FROM tasks
WHERE lane = ? ORDER BY created_at, seq LIMIT ?
-- name: lane_keys
SELECT key FROM lanes WHERE id IN (SELECT value FROM json_each(?))
-- name: lane_id
SELECT id FROM lanes WHERE key = ?
-- name: add_lane
INSERT INTO lanes (key, ready) VALUES (?, 0) RETURNING id
-- name: touch_lane
UPDATE lanes SET ready = ready + ? WHERE id = ?
-- name: wait_codes
SELECT wait, sum(count) FROM tallies WHERE wait <> '' AND count > 0 GROUP BY wait ORDER BY wait
-- name: wait_first
SELECT id FROM tasks WHERE wait = ? AND wait <> '' ORDER BY seq LIMIT 5
-- name: wait_until
SELECT min(due_at) FROM tasks WHERE wait = ? AND wait <> '' AND due_at IS NOT NULL

-- name: insert_task
INSERT INTO tasks ({task}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
-- name: stands
SELECT lane, status, wait, project, kind FROM tasks WHERE id = ?
-- name: save_task
UPDATE tasks SET status = ?, lane = ?, wait = ?, due_at = ?, created_at = ?, ready_since = ?,
    ended_at = ?, failures = ?, attempts = ?, facts = ? WHERE seq = ?
-- name: rewrite_task
UPDATE tasks SET project = ?, kind = ?, estimate = ?, priority = ?, depth = ?, agent = ?,
    pool = ?, in_group = ?, parent = ?, body = ?, prompt = ? WHERE seq = ?
-- name: add_need
INSERT OR IGNORE INTO needs (needed, task) VALUES (?, ?)
-- name: drop_need
DELETE FROM needs WHERE needed = ? AND task = ?
-- name: tally
INSERT INTO tallies (status, wait, project, kind, count) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET count = count + excluded.count
-- name: lower_tally
UPDATE tallies SET count = count + ? WHERE status = ? AND wait = ? AND project = ? AND kind = ?
-- name: put_number
INSERT OR REPLACE INTO numbers (name, next) VALUES (?, ?)

-- name: attempt
SELECT {attempt} FROM attempts WHERE lease = ?
-- name: attempts
SELECT {attempt} FROM attempts WHERE task = ? ORDER BY fence
-- name: open_attempts
SELECT {attempt} FROM attempts INDEXED BY attempts_open WHERE ended_at IS NULL ORDER BY fence
-- name: open_attempts_of
SELECT {attempt} FROM attempts WHERE ended_at IS NULL AND task IN (SELECT value FROM json_each(?)) ORDER BY fence
-- name: ended_attempts
SELECT {ended} FROM attempts WHERE ended_at >= ? ORDER BY ended_at DESC, fence DESC LIMIT ?
-- name: put_attempt
INSERT INTO attempts ({attempt}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (fence) DO UPDATE SET    -- NULL is refused: a fence is given out once
    number = iif(lease = excluded.lease AND task = excluded.task, number, NULL),
    worker = excluded.worker, expires_at = excluded.expires_at,
    ended_at = excluded.ended_at, outcome = excluded.outcome, input = excluded.input,
    output = excluded.output, cache_read = excluded.cache_read,
    cache_write = excluded.cache_write, usd = excluded.usd, body = excluded.body
-- name: recent
SELECT project, kind, agent, input, output, cache_read, cache_write, usd FROM attempts
WHERE project = ? AND kind = ? AND agent IS ? AND ended_at IS NOT NULL
    AND input + output + cache_write + cache_read > 0
ORDER BY ended_at DESC, fence DESC LIMIT ?
-- name: all_history
SELECT project, kind, agent, estimate, tokens, usd FROM history ORDER BY project, kind, agent
-- name: put_history
INSERT OR REPLACE INTO history (project, kind, agent, estimate, tokens, usd)
VALUES (?, ?, ?, ?, ?, ?)
-- name: usage
SELECT scope, minute, input, output, cache_read, cache_write, usd, starts, completions FROM usage
WHERE scope = ? AND minute >= ? ORDER BY minute
-- name: scopes
WITH RECURSIVE scopes (scope) AS (    -- from one to the next, over all of its minutes
    SELECT min(scope) FROM usage WHERE scope >= ?1 AND scope < ?1 || char(1114111)
    UNION ALL
    SELECT (SELECT min(scope) FROM usage
        WHERE scope > scopes.scope AND scope < ?1 || char(1114111))
    FROM scopes WHERE scope IS NOT NULL
)
SELECT scope FROM scopes WHERE scope IS NOT NULL
-- name: usage_sum
SELECT ?1, ?2, sum(input), sum(output), sum(cache_read), sum(cache_write), sum(usd), sum(starts),
    sum(completions) FROM usage WHERE scope = ?1 AND minute >= ?2 HAVING count(*) > 0
-- name: book
INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET input = input + excluded.input, output = output + excluded.output,
    cache_read = cache_read + excluded.cache_read,
    cache_write = cache_write + excluded.cache_write, usd = usd + excluded.usd,
    starts = starts + excluded.starts, completions = completions + excluded.completions

-- name: all_projects
SELECT body, clock, present FROM projects ORDER BY name
-- name: put_projects
INSERT INTO projects (name, clock, present, body) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET clock = excluded.clock, present = excluded.present, body = excluded.body
-- name: drop_projects
DELETE FROM projects WHERE name = ?
-- name: put_clock
UPDATE projects SET clock = ?, present = ? WHERE name = ?
-- name: all_groups
SELECT name, parent, priority, title FROM groups ORDER BY name
-- name: put_groups
INSERT OR REPLACE INTO groups (name, parent, priority, title) VALUES (?, ?, ?, ?)
-- name: all_pools
SELECT body FROM pools ORDER BY name
-- name: put_pools
INSERT OR REPLACE INTO pools (name, body) VALUES (?, ?)
-- name: all_workers
SELECT body FROM workers ORDER BY name
-- name: put_workers
INSERT OR REPLACE INTO workers (name, body) VALUES (?, ?)
-- name: drop_workers
DELETE FROM workers WHERE name = ?
-- name: all_pauses
SELECT body FROM pauses ORDER BY scope
-- name: put_pauses
INSERT OR REPLACE INTO pauses (scope, body) VALUES (?, ?)
-- name: drop_pauses
DELETE FROM pauses WHERE scope = ?

-- name: events
SELECT number, at, kind, task, project, data FROM events
WHERE number > ? AND kind = ifnull(?, kind) ORDER BY number LIMIT ?
-- name: events_of_task
SELECT number, at, kind, task, project, data FROM events
WHERE task = ? AND number > ? AND kind = ifnull(?, kind) ORDER BY number LIMIT ?
-- name: last_events
SELECT number, at, kind, task, project, data FROM events
WHERE number > ? AND kind = ifnull(?, kind) ORDER BY number DESC LIMIT ?
-- name: last_events_of_task
SELECT number, at, kind, task, project, data FROM events
WHERE task = ? AND number > ? AND kind = ifnull(?, kind) ORDER BY number DESC LIMIT ?
-- name: log
INSERT INTO events (number, at, kind, task, project, data) VALUES (?, ?, ?, ?, ?, ?)
-- name: decisions
SELECT number, at, base, policy, planner, lanes, rest, plan, digests FROM decisions
WHERE number > ? ORDER BY number LIMIT ?
-- name: put_decision
INSERT INTO decisions (number, at, base, policy, planner, lanes, rest, plan, digests)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
-- name: drop_decisions
DELETE FROM decisions WHERE number < ?
-- name: all_policies
SELECT digest, text FROM policies ORDER BY digest
-- name: put_policies
INSERT OR IGNORE INTO policies (digest, text) VALUES (?, ?)
-- name: value
SELECT value FROM key_values WHERE name = ?
-- name: put_value
INSERT OR REPLACE INTO key_values (name, value) VALUES (?, ?)
-- name: drop_value
DELETE FROM key_values WHERE name = ?

-- name: compact_which
SELECT seq, id, ended_at, parent, json_extract(body, '$.needs'),
    EXISTS (SELECT 1 FROM needs n JOIN tasks u ON u.seq = n.task
        WHERE n.needed = t.id AND u.status NOT IN ('done', 'canceled'))
    OR EXISTS (SELECT 1 FROM tasks u
        WHERE u.parent = t.id AND u.status NOT IN ('done', 'canceled'))
FROM tasks t
WHERE ended_at < ?1 AND body <> '{"meta":{"compacted":true}}' AND (ended_at, seq) > (?2, ?3)
ORDER BY ended_at, seq LIMIT ?4
-- name: compact_task
UPDATE tasks SET facts = '{}', body = '{"meta":{"compacted":true}}', prompt = '' WHERE seq = ?
-- name: compact_attempts
DELETE FROM attempts WHERE task = ?
-- name: times_of_events
SELECT number, at FROM events WHERE number > ? ORDER BY number LIMIT ?
-- name: compact_events
DELETE FROM events WHERE number > ? AND number <= ? AND at < ?
-- name: first_decision
SELECT number, base FROM decisions WHERE number > 0 ORDER BY number LIMIT 1
-- name: next_base
SELECT number FROM decisions WHERE number > ? AND base <> ? ORDER BY number LIMIT 1
-- name: compact_decisions
DELETE FROM decisions WHERE number < ?1
    AND NOT EXISTS (SELECT 1 FROM decisions WHERE number < ?1 AND at >= ?2)
-- name: next_scope
SELECT min(scope) FROM usage WHERE scope > ?
-- name: minutes_of_scope
SELECT minute FROM usage
WHERE scope = ? AND minute > ? AND minute < ? AND minute % 86400000000 <> 0 ORDER BY minute LIMIT ?
-- name: compact_usage
INSERT INTO usage
SELECT scope, minute - minute % 86400000000, sum(input), sum(output), sum(cache_read),
    sum(cache_write), sum(usd), sum(starts), sum(completions) FROM usage
WHERE scope = ? AND minute > ? AND minute <= ? AND minute % 86400000000 <> 0 GROUP BY 1, 2
ON CONFLICT DO UPDATE SET input = input + excluded.input, output = output + excluded.output,
    cache_read = cache_read + excluded.cache_read,
    cache_write = cache_write + excluded.cache_write, usd = usd + excluded.usd,
    starts = starts + excluded.starts, completions = completions + excluded.completions
-- name: compact_minutes
DELETE FROM usage
WHERE scope = ? AND minute > ? AND minute <= ? AND minute % 86400000000 <> 0
-- name: compact_lanes
DELETE FROM lanes WHERE id IN (SELECT id FROM lanes WHERE ready = 0 LIMIT ?)
-- name: other_policies
SELECT 1 FROM policies WHERE digest <>
    ifnull((SELECT json_extract(value, '$') FROM key_values WHERE name = 'policy'), '') LIMIT 1
-- name: compact_policies
DELETE FROM policies WHERE digest NOT IN (SELECT policy FROM decisions)
    AND digest <> ifnull((SELECT json_extract(value, '$') FROM key_values WHERE name = 'policy'), '')
