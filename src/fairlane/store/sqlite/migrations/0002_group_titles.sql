-- Groups have a title: what people read.
ALTER TABLE groups ADD COLUMN title TEXT NOT NULL DEFAULT '';
