-- The state of an open execution's program when it had seen an event and its turn was recorded: a program that is rebuilt
-- begins with it, not with the first event.
-- compatible from: 1

CREATE TABLE IF NOT EXISTS holdfast_snapshots (
    execution_id text   COLLATE "C" NOT NULL PRIMARY KEY,
    org          text   COLLATE "C" NOT NULL,
    up_to        bigint NOT NULL,
    version      text   COLLATE "C" NOT NULL,
    build        text   COLLATE "C" NOT NULL,
    state        bytea  NOT NULL,
    CHECK (up_to >= 1)
);
