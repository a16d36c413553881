-- A percentile that reports show, so that none of them has to decode the histogram for it. NULL: the
-- row is older, or holds no value.
ALTER TABLE histogram ADD COLUMN p95_ns INTEGER;
