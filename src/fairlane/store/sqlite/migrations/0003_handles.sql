-- An attempt has the handle of its executor instead of a process number and its start time.
UPDATE attempts SET body = json_set(
        json_remove(body, '$.pid', '$.pid_started'),
        '$.handle',
        json_extract(body, '$.pid') || ' ' || ifnull(json_extract(body, '$.pid_started'), '')
    )
    WHERE json_extract(body, '$.pid') IS NOT NULL;
UPDATE attempts SET body = json_remove(body, '$.pid_started')
    WHERE json_extract(body, '$.pid_started') IS NOT NULL;
-- Small values have a table that says so.
ALTER TABLE kept RENAME TO key_values;
