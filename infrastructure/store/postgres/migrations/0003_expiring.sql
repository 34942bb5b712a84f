-- A sweep finds expired events among those that live longer. Commits wait while the index is built.
-- On a large table, create it with CONCURRENTLY before the migration.
CREATE INDEX IF NOT EXISTS events_expiring ON events (expires_at) WHERE expires_at IS NOT NULL;
