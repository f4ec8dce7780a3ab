-- Compaction finds what it has not compacted yet, however much it has compacted before.
DROP INDEX tasks_ended;
CREATE INDEX tasks_ended ON tasks (ended_at)
    WHERE ended_at IS NOT NULL AND body <> '{"meta":{"compacted":true}}';
