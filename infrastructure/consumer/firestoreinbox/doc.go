// Package firestoreinbox keeps a consumer's inbox in Firestore, where the consumer has what its
// handlers write: Do runs a handler in one transaction with the mark of its event, so that what
// it writes for an event is stored once, whatever crashes when.
//
//	database, err := firestore.NewClient(ctx, "shop")
//	inbox, err := firestoreinbox.New(database, "billing", nil)
//	err = inbox.Do(ctx, received, func(ctx context.Context, tx *firestore.Transaction) error {
//		orders := firestore.Update{Path: "orders", Value: firestore.Increment(1)}
//		return tx.Update(database.Collection("totals").Doc(received.Key), []firestore.Update{orders})
//	})
//
// Several consumers may share the collection: each has a document for a key, which carries when
// it expires in expireAt. A TTL policy on that field removes it; without one it stays.
//
// Nothing here starts a goroutine.
package firestoreinbox
