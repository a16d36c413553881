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
    -- None where the log lost it.
    submitted INTEGER,
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
    name TEXT NOT NULL,
    is_server INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    first_line TEXT NOT NULL,
    -- A log is known by its first line: another one may have its name by now.
    PRIMARY KEY (name, first_line)
) STRICT, WITHOUT ROWID;

-- The last lines that were read, behind which a server is followed.
CREATE TABLE last_lines (id INTEGER PRIMARY KEY CHECK (id = 1), lines TEXT NOT NULL) STRICT;
INSERT INTO last_lines VALUES (1, '');

-- Where lines may be missing between what was read before and after.
CREATE TABLE gap (before_change INTEGER NOT NULL, why TEXT NOT NULL) STRICT;
