// Package postgresinbox stores a consumer's inbox in a table of the PostgreSQL database to which its
// handlers write. Do runs a handler and records its event in one transaction, so the writes of an
// event are stored exactly once, even after a crash.
//
//	inbox, err := postgresinbox.New(pool, "billing", nil)
//	err = inbox.Create(ctx) // the table, unless it exists
//	err = inbox.Do(ctx, received, func(ctx context.Context, tx pgx.Tx) error {
//		_, err := tx.Exec(ctx, `UPDATE totals SET orders = orders + 1 WHERE id = $1`, received.Key)
//		return err
//	})
//
// Several consumers may share the table, because each has its own row per key. Do locks the row of a
// key while the handler runs. A process that has lost the key without noticing therefore waits, and
// then finds that the event was handled.
//
// The package starts no goroutines.
package postgresinbox
