-- name: insert_timers
-- Timers armed in the batch. A conflict is a row left by hand: the log wins.
INSERT INTO timers AS t (tenant, agent, run, timer, class, due, about)
SELECT tenant, agent, run, timer, class, due, about
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])
    AS s (tenant, agent, run, timer, class, due, about)
ON CONFLICT (run, timer, agent, tenant) DO UPDATE SET class = excluded.class, due = excluded.due, about = excluded.about;

-- name: drop_timers
-- Timers that fired or were taken back.
DELETE FROM timers AS t
USING unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS s (tenant, agent, run, timer)
WHERE t.run = s.run AND t.timer = s.timer AND t.agent = s.agent AND t.tenant = s.tenant;
