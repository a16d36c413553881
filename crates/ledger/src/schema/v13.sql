-- Version 13: how old values were when they came, over all groups of clients together: SQL can't
-- merge the histograms of groups. NULL: nothing streams, or the trial is older. And every metric that
-- calls told stands in the view of trials: views.sql.
ALTER TABLE trial ADD COLUMN staleness_p50_ns INTEGER;
ALTER TABLE trial ADD COLUMN staleness_p99_ns INTEGER;
ALTER TABLE trial ADD COLUMN staleness_max_ns INTEGER;
