-- What a warm-up that ends when the load is steady found. NULL: its length was fixed beforehand.
ALTER TABLE trial ADD COLUMN stationary INTEGER CHECK (stationary IN (0, 1));
-- How long after its start the load was steady; NULL besides when it never was.
ALTER TABLE trial ADD COLUMN steady_after_ns INTEGER;
