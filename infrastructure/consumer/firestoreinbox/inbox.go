// Package firestoreinbox stores a consumer's inbox in the Firestore database to which its handlers
// write. Do runs a handler and records its event in one transaction, so the writes of an event are
// stored exactly once, even after a crash.
//
//	database, err := firestore.NewClient(ctx, "shop")
//	inbox, err := firestoreinbox.New(database, "billing", nil)
//	err = inbox.Do(ctx, received, func(ctx context.Context, tx *firestore.Transaction) error {
//		orders := firestore.Update{Path: "orders", Value: firestore.Increment(1)}
//		return tx.Update(database.Collection("totals").Doc(received.Key), []firestore.Update{orders})
//	})
//
// Several consumers may share the collection, because each has its own document per key. Field
// expireAt has the expiry of a document. It takes effect only with a TTL policy on that field.
//
// The package starts no goroutines.
package firestoreinbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/internal/limit"
)

// Inbox is a consumer.Inbox in a collection. It is safe for concurrent use.
type Inbox struct {
	client   *firestore.Client
	consumer string
	marks    *firestore.CollectionRef
	ttl      time.Duration
	timeout  time.Duration
}

var _ consumer.Inbox = (*Inbox)(nil)

// Options are the options of New. Zero means the default.
type Options struct {
	// Collection contains the marks. Default "feedboxInbox".
	Collection string
	// TTL is how long a key's mark is kept after its last event. It should exceed the time within
	// which an event may be redelivered. Default 30 days; negative: no expiry.
	TTL time.Duration
	// Timeout bounds the requests of an operation. For Do, it bounds those before the handler, and
	// those after it. Default 15 s.
	Timeout time.Duration
}

// stored is the document of a mark.
type stored struct {
	Consumer         string    `firestore:"consumer"`
	Key              string    `firestore:"key"`
	Sequence         int64     `firestore:"sequence"`
	AggregateVersion int64     `firestore:"aggregateVersion"`
	EventID          string    `firestore:"eventId"`
	Recent           string    `firestore:"recent,omitempty"`
	Parking          string    `firestore:"parking,omitempty"`
	ExpireAt         time.Time `firestore:"expireAt,omitempty"`
}

// New returns the inbox of the named consumer. It does no I/O.
func New(client *firestore.Client, consumer string, opts *Options) (*Inbox, error) {
	if client == nil || consumer == "" {
		return nil, errors.New("firestore inbox: client and consumer are required")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	name := cmp.Or(o.Collection, "feedboxInbox")
	marks := client.Collection(name)
	if marks == nil {
		return nil, fmt.Errorf("firestore inbox: %q is not a collection: use an id, or a path with an odd number of ids", name)
	}
	return &Inbox{client, consumer, marks, cmp.Or(o.TTL, 30*24*time.Hour), o.Timeout}, nil
}

// mark returns the document of a key. Its id is a hash, because a key may contain characters that are
// not allowed in an id.
func (b *Inbox) mark(key string) *firestore.DocumentRef {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(b.consumer), b.consumer, key))
	return b.marks.Doc(hex.EncodeToString(sum[:]))
}

// Last implements consumer.Inbox.
func (b *Inbox) Last(ctx context.Context, key string) (consumer.Mark, error) {
	ctx, l := limit.Start(ctx, b.timeout)
	m, err := decode(b.mark(key).Get(ctx))
	return m, wrap("read the inbox of key "+key, l.End(err))
}

// Record implements consumer.Inbox. It does not change a mark that Do has stored.
func (b *Inbox) Record(ctx context.Context, key string, m consumer.Mark) error {
	err := b.advance(ctx, key, func(last consumer.Mark) (consumer.Mark, bool, error) { return m, m.Supersedes(last), nil }, func(context.Context, *firestore.Transaction) error { return nil })
	return wrap("write the inbox of key "+key, err)
}

// Do runs handle in a transaction that also records e, and commits it. It skips an event that was
// handled before, without an error. As in any Firestore transaction, handle must read before it
// writes, and is called again if a document it read has changed. After an error the event must be
// redelivered. Nothing was stored, unless the response to the commit was lost; Do then skips the
// redelivered event.
func (b *Inbox) Do(ctx context.Context, e *consumer.Event, handle func(ctx context.Context, tx *firestore.Transaction) error) error {
	if e == nil || e.Key == "" || e.ID == "" || handle == nil {
		return errors.New("firestore inbox: an event with a key and an id, and a handler, are required")
	}
	err := b.advance(ctx, e.InboxKey(), func(last consumer.Mark) (consumer.Mark, bool, error) {
		if v := consumer.Judge(last, e); v == consumer.Duplicate || v == consumer.Stale {
			return last, false, nil
		}
		e.Replaced = last.Replaced(e)
		return last.Next(e), true, last.MayHandle(e)
	}, handle)
	return wrap("handle event "+e.ID+" of key "+e.Key, err)
}

// advance calls handle and sets the mark of a key, in one transaction. It does neither if next, which
// returns the mark after the last one, reports false.
func (b *Inbox) advance(ctx context.Context, key string, next func(last consumer.Mark) (consumer.Mark, bool, error), handle func(context.Context, *firestore.Transaction) error) error {
	mark := b.mark(key)
	ctx, l := limit.Start(ctx, b.timeout)
	return l.End(b.client.RunTransaction(ctx, func(ctx context.Context, tx *firestore.Transaction) error {
		last, err := decode(tx.Get(mark))
		if err != nil {
			return err
		}
		m, later, err := next(last)
		if err != nil || !later {
			return err
		}
		if err := l.Suspend(func() error { return handle(ctx, tx) }); err != nil {
			return err
		}
		s := stored{Consumer: b.consumer, Key: key, Sequence: m.Sequence, AggregateVersion: m.AggregateVersion, EventID: m.EventID, Recent: m.Recent, Parking: m.Parking}
		if b.ttl > 0 {
			s.ExpireAt = time.Now().Add(b.ttl)
		}
		return tx.Set(mark, s)
	}))
}

// decode returns the mark in a document, or the zero mark if the document does not exist. Without the database there
// is no snapshot.
func decode(d *firestore.DocumentSnapshot, err error) (consumer.Mark, error) {
	if d != nil && status.Code(err) == codes.NotFound {
		return consumer.Mark{}, nil
	}
	var s stored
	if err == nil {
		err = d.DataTo(&s)
	}
	return consumer.Mark{Sequence: s.Sequence, AggregateVersion: s.AggregateVersion, EventID: s.EventID, Recent: s.Recent, Parking: s.Parking}, err
}

func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}
