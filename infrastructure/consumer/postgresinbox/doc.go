// Package postgresinbox keeps a consumer's inbox in a table of PostgreSQL, where the consumer has
// what its handlers write: Do runs a handler in one transaction with the mark of its event, so
// that what it writes for an event is stored once, whatever crashes when.
//
//	inbox, err := postgresinbox.New(pool, "billing", nil)
//	err = inbox.Create(ctx) // the table, unless it is there
//	err = inbox.Do(ctx, received, func(ctx context.Context, tx pgx.Tx) error {
//		_, err := tx.Exec(ctx, `UPDATE totals SET orders = orders + 1 WHERE id = $1`, received.Key)
//		return err
//	})
//
// Several consumers may share the table: each has a row for a key. The row of a key is locked
// while its handler runs, so that a holder of the key that lost it without knowing waits, and
// then finds the event handled.
//
// Nothing here starts a goroutine.
package postgresinbox
