-- What the tables say.
CREATE VIEW slowest AS
SELECT
    path,
    count(*) AS runs,
    sum(state = 'aborted') AS aborted,
    sum(took) AS total,
    max(took) AS longest,
    max(waited) AS longest_wait
FROM (
    SELECT
        path,
        state,
        max(ended - coalesce(active, submitted), 0) AS took,
        coalesce(active - submitted, 0) AS waited
    FROM run
    WHERE ended IS NOT NULL
)
GROUP BY path
ORDER BY longest DESC, total DESC, path;

CREATE VIEW critical_path AS
WITH RECURSIVE chain (id, back) AS (
    SELECT id, 0 FROM (
        SELECT id FROM run WHERE ended IS NOT NULL ORDER BY ended DESC, id DESC LIMIT 1
    )
    UNION ALL
    SELECT before.id, chain.back + 1
    FROM chain
    JOIN run AS this ON this.id = chain.id
    JOIN run AS before ON before.id = (
        SELECT one.id
        FROM awaits
        JOIN run AS one ON one.path = awaits.awaited
            OR (one.path > awaits.awaited || '/' AND one.path < awaits.awaited || '0')
        WHERE awaits.path = this.path AND one.ended <= coalesce(this.submitted, this.active) AND one.id < this.id
        ORDER BY one.ended DESC, one.id DESC
        LIMIT 1
    )
)
SELECT run.path, run.submitted, run.active, run.ended, run.state
FROM chain
JOIN run ON run.id = chain.id
ORDER BY chain.back DESC;

CREATE VIEW limit_held AS
WITH taken (limit_name, tokens, since, until) AS (
    SELECT
        token.limit_name,
        token.tokens,
        coalesce(run.submitted, run.active),
        CASE WHEN token.until_active THEN coalesce(run.active, run.ended) ELSE run.ended END
    FROM run JOIN token ON token.path = run.path
    -- The end of one that was requeued, or followed by another, while it ran was not seen; what was
    -- taken until it was active had been given back by then.
    WHERE run.ended IS NOT NULL
        OR token.until_active AND run.active IS NOT NULL
        OR run.state <> 'queued'
        AND run.id = (SELECT max(id) FROM run AS other WHERE other.path = run.path)
),
step (limit_name, at, tokens) AS (
    SELECT limit_name, since, tokens FROM taken
    UNION ALL
    SELECT limit_name, until, -tokens FROM taken WHERE until IS NOT NULL
)
SELECT
    limit_name,
    step.at,
    sum(tokens) OVER same AS held,
    -- What is held behind the last step of a limit is held until the last that is known of any run.
    coalesce(lead(step.at) OVER same, max(step.at, latest.at)) - step.at AS seconds
FROM step, (
    SELECT max(max(coalesce(submitted, 0), coalesce(active, 0), coalesce(ended, 0))) AS at FROM run
) AS latest
WINDOW same AS (PARTITION BY limit_name ORDER BY step.at, tokens ROWS UNBOUNDED PRECEDING);

CREATE VIEW limit_use AS
SELECT
    limits.limit_name,
    limits.tokens,
    -- A run shorter than a second begins and ends at once.
    max(max(held), (
        SELECT max(token.tokens) FROM token JOIN run ON run.path = token.path
        WHERE token.limit_name = limits.limit_name
    )) AS most,
    sum(CASE WHEN held >= limits.tokens AND held > 0 THEN seconds ELSE 0 END) AS full_for,
    sum(CASE WHEN held > 0 THEN seconds ELSE 0 END) AS used_for
FROM limits
JOIN limit_held ON limit_held.limit_name = limits.limit_name
GROUP BY limits.limit_name
ORDER BY full_for DESC, used_for DESC, limits.limit_name;
