-- The state of an open execution's program when it had seen an event and its turn was recorded: a program that is rebuilt
-- begins with it, not with the first event.
CREATE TABLE holdfast_snapshots (
    execution_id TEXT    NOT NULL PRIMARY KEY,
    org          TEXT    NOT NULL,
    up_to        INTEGER NOT NULL,
    version      TEXT    NOT NULL,
    build        TEXT    NOT NULL,
    state        BLOB    NOT NULL,
    CHECK (up_to >= 1)
) STRICT;
