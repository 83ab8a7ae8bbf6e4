-- Leased rows with news that their worker was not told of: a node that works among others looks for them many times a
-- second, and would pass all that its workers have held and given back since the last vacuum. What it costs is an entry
-- for an execution that gets news while a worker holds it, and none otherwise.
-- no transaction
-- compatible from: 1

CREATE INDEX CONCURRENTLY IF NOT EXISTS holdfast_ready_news ON holdfast_ready (worker)
    WHERE news AND worker IS NOT NULL;
