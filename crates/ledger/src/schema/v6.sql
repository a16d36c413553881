-- Version 6: what limited a trial, and the figures that show it. docs/ledger.md explains every
-- column.

-- What both sides and the host did in a trial's measured slices; a figure that isn't there was
-- unseen. A table of names, because what hosts show differs and grows.
CREATE TABLE usage (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (trial_id, name)
) STRICT, WITHOUT ROWID;

-- The limits that a trial reached, the one that gives way first at rank 1.
CREATE TABLE reached (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    rank INTEGER NOT NULL,
    code TEXT NOT NULL,
    strength REAL NOT NULL,
    evidence TEXT NOT NULL,
    PRIMARY KEY (trial_id, rank)
) STRICT, WITHOUT ROWID;

ALTER TABLE trial ADD COLUMN shared TEXT;

-- One row per measured trial and limit; a trial that reached none has one row with rank NULL.
CREATE VIEW limits AS
SELECT
    round.run_id AS run_id,
    point.label AS point,
    target.name AS target,
    round.ordinal AS round,
    trial.id AS trial_id,
    trial.validity AS validity,
    reached.rank AS rank,
    coalesce(reached.code, 'none') AS code,
    reached.strength AS strength,
    reached.evidence AS evidence,
    trial.shared AS shared
FROM trial
JOIN round ON round.id = trial.round_id
JOIN point ON point.id = round.point_id
JOIN target ON target.id = trial.target_id
LEFT JOIN reached ON reached.trial_id = trial.id
WHERE trial.shared IS NOT NULL;
