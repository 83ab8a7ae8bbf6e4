-- Ids begin with the time they were made at, so pages by time are pages by id. These few were made at another time.
CREATE INDEX holdfast_executions_astray ON holdfast_executions (org, id)
    WHERE replace(substr(id, 1, 13), '-', '') < printf('%012x', max(created_at / 1000 - 60000, 0))
        OR replace(substr(id, 1, 13), '-', '') >= printf('%012x', created_at / 1000 + 60000);
