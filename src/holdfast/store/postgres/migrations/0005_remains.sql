-- Executions that are gone, but for events up to a number: these are removed page by page.
-- compatible from: 1

CREATE TABLE holdfast_remains (
    execution_id text   COLLATE "C" NOT NULL PRIMARY KEY,
    org          text   COLLATE "C" NOT NULL,
    last_seq     bigint NOT NULL,
    CHECK (last_seq >= 1)
);
