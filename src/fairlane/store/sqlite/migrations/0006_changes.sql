-- What each transaction has changed, so that whoever has looked before reads only that. It takes
-- the place of the version of every lane; what changed before is not known.
CREATE TABLE changes (
    version INTEGER PRIMARY KEY,              -- one more with every transaction that wrote
    what TEXT                                 -- JSON; NULL: anything
);
INSERT INTO changes (version) SELECT ifnull(max(next), 1) - 1 FROM numbers WHERE name = 'version';
DELETE FROM numbers WHERE name IN ('version', 'compacted');
DROP INDEX lanes_version;
ALTER TABLE lanes DROP COLUMN version;
