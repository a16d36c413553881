-- Every change of a state that the log has, in its order.
CREATE TABLE change (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    path TEXT NOT NULL,
    state TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX change_of_path ON change (path, id);

-- The runs of tasks, in the order of submission.
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    submitted INTEGER NOT NULL,
    active INTEGER,
    ended INTEGER,
    state TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX run_of_path ON run (path, id);
CREATE INDEX run_by_end ON run (ended);

-- Nodes that others lie below: they have no runs.
CREATE TABLE container (path TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- By the definition: the nodes whose end a task waits for, what it takes of limits, and the limits.
CREATE TABLE awaits (
    path TEXT NOT NULL,
    awaited TEXT NOT NULL,
    PRIMARY KEY (path, awaited)
) STRICT, WITHOUT ROWID;
CREATE TABLE token (
    path TEXT NOT NULL,
    limit_name TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    until_active INTEGER NOT NULL
) STRICT;
CREATE INDEX token_of_path ON token (path);
CREATE TABLE limits (limit_name TEXT PRIMARY KEY, tokens INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- What was read: logs as far as they were, and servers that were followed.
CREATE TABLE source (
    name TEXT PRIMARY KEY,
    is_server INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    first_line TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The last lines that were read, behind which a server is followed.
CREATE TABLE last_lines (id INTEGER PRIMARY KEY CHECK (id = 1), lines TEXT NOT NULL) STRICT;
INSERT INTO last_lines VALUES (1, '');

-- Where lines may be missing between what was read before and after.
CREATE TABLE gap (before_change INTEGER NOT NULL, why TEXT NOT NULL) STRICT;

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
        WHERE awaits.path = this.path AND one.ended <= this.submitted AND one.id < this.id
        ORDER BY one.ended DESC, one.id DESC
        LIMIT 1
    )
)
SELECT run.path, run.submitted, run.active, run.ended, run.state
FROM chain
JOIN run ON run.id = chain.id
ORDER BY chain.back DESC;

CREATE VIEW limit_held AS
WITH step (limit_name, at, tokens) AS (
    SELECT token.limit_name, run.submitted, token.tokens
    FROM run JOIN token ON token.path = run.path
    -- One without an end that was followed by another ended unseen.
    WHERE run.ended IS NOT NULL
        OR run.id = (SELECT max(id) FROM run AS other WHERE other.path = run.path)
    UNION ALL
    SELECT
        token.limit_name,
        CASE WHEN token.until_active THEN coalesce(run.active, run.ended) ELSE run.ended END,
        -token.tokens
    FROM run JOIN token ON token.path = run.path
    WHERE run.ended IS NOT NULL
)
SELECT
    limit_name,
    at,
    sum(tokens) OVER same AS held,
    coalesce(lead(at) OVER same - at, 0) AS seconds
FROM step
WINDOW same AS (PARTITION BY limit_name ORDER BY at, tokens ROWS UNBOUNDED PRECEDING);

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
