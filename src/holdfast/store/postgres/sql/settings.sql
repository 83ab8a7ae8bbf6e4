-- name: propose
-- What all nodes have in common; the first one to come says what it is.
INSERT INTO holdfast_settings (name, value) SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING;

-- name: all
SELECT name, value FROM holdfast_settings;

-- name: place
-- Which database of its server this is: a copy of it has the same settings.
SELECT current_database() || ' ' || (SELECT oid::text FROM pg_database WHERE datname = current_database());

-- name: joined
-- Which database a connection of the application's is on; its transaction's isolation, number and settings.
SELECT (SELECT value FROM holdfast_settings WHERE name = 'identity') || ' ' || current_database() || ' ' ||
        (SELECT oid::text FROM pg_database WHERE datname = current_database()),
    current_setting('transaction_isolation'), pg_current_xact_id()::text, current_setting('enable_seqscan'), current_setting('enable_hashjoin'),
    current_setting('enable_mergejoin'), current_setting('jit'), current_setting('lock_timeout');
