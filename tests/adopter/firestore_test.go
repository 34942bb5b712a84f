package main

import (
	"context"
	"errors"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/firestoreinbox"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/firestore"
	"os"

	google "cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.com/orders/open"
	"example.com/orders/store"
)

// inFirestore stores orders in a database of Firestore.
type inFirestore struct {
	db     *firestore.DB
	client *google.Client // for the consumer
}

func openFirestore(ctx context.Context, project string) (inFirestore, error) {
	db, err := firestore.Open(ctx, firestore.Options{Project: project, Emulator: os.Getenv("FIRESTORE_EMULATOR_HOST")})
	client, wrong := google.NewClient(ctx, project)
	return inFirestore{db, client}, errors.Join(err, wrong)
}

func (k inFirestore) orders() (*store.Orders, error) { return ordersIn(firestore.Records{DB: k.db}) }

func (k inFirestore) events() (relayport.Store, error) {
	return firestore.NewRelayStore(k.db, document.EventContract{}, 0)
}

func (k inFirestore) of(id string) *google.DocumentRef { return k.client.Collection("totals").Doc(id) }

func (k inFirestore) totals(context.Context) (consumer.Inbox, counter, error) {
	inbox, err := firestoreinbox.New(k.client, open.Name, nil)
	return inbox, func(ctx context.Context, e *consumer.Event, change func(t *open.Total)) error {
		return inbox.Do(ctx, e, func(_ context.Context, tx *google.Transaction) error {
			t, err := decodeTotal(tx.Get(k.of(e.Key)))
			if err != nil && status.Code(err) != codes.NotFound {
				return err
			}
			change(&t)
			t.Events++
			return tx.Set(k.of(e.Key), t)
		})
	}, err
}

func decodeTotal(d *google.DocumentSnapshot, err error) (t open.Total, _ error) {
	if err != nil {
		return t, err
	}
	return t, d.DataTo(&t)
}

func (k inFirestore) total(ctx context.Context, id string) (open.Total, error) {
	return decodeTotal(k.of(id).Get(ctx))
}

func (k inFirestore) stored(ctx context.Context) (aggregates []verify.Aggregate, events []verify.Event, err error) {
	err = k.db.Walk(ctx, func(raw []byte) error {
		d, err := verify.DecodeDocument(raw)
		switch {
		case err != nil:
			return err
		case d.Kind == verify.KindAggregate:
			aggregates = append(aggregates, d.Aggregate())
		case d.Kind == verify.KindEvent:
			events = append(events, d.Event())
		}
		return nil
	})
	return aggregates, events, err
}
