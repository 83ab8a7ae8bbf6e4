-- What the value of a promise must look like; null for anything.
ALTER TABLE holdfast_promises ADD COLUMN shape TEXT NOT NULL DEFAULT 'null';
