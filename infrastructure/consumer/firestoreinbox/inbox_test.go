package firestoreinbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/firestore"
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/firestoreinbox"
	"feedbox/tests/servers"
)

// billing is a consumer that adds up the sequences of a key's events.
type billing struct {
	*firestoreinbox.Inbox
	client *firestore.Client
}

func newBilling(t *testing.T) *billing {
	t.Helper()
	t.Setenv("FIRESTORE_EMULATOR_HOST", servers.StartFirestore(t))
	client, err := firestore.NewClient(t.Context(), "inbox")
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	b := &billing{client: client}
	b.Inbox, err = firestoreinbox.New(client, "billing", nil)
	must(t, err)
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func event(sequence int64) *consumer.Event {
	return &consumer.Event{ID: fmt.Sprint("e", sequence), Key: "a/key", Sequence: sequence, AggregateVersion: sequence}
}

func (b *billing) total() *firestore.DocumentRef { return b.client.Collection("totals").Doc("all") }

func (b *billing) add(e *consumer.Event) func(context.Context, *firestore.Transaction) error {
	return func(_ context.Context, tx *firestore.Transaction) error {
		return tx.Set(b.total(), map[string]any{"total": firestore.Increment(e.Sequence)}, firestore.MergeAll)
	}
}

func (b *billing) want(t *testing.T, total int64, last *consumer.Event) {
	t.Helper()
	var got struct {
		Total int64 `firestore:"total"`
	}
	if d, err := b.total().Get(t.Context()); d.Exists() {
		must(t, errors.Join(err, d.DataTo(&got)))
	}
	mark, err := b.Last(t.Context(), "a/key")
	must(t, err)
	mark.Recent = ""
	want := consumer.Mark{}
	if last != nil {
		want = last.Mark()
	}
	if got.Total != total || mark != want {
		t.Errorf("the total is %d, want %d; the mark %+v, want %+v", got.Total, total, mark, want)
	}
}

func TestEventThatIsBeingParkedIsNotHandled(t *testing.T) {
	b := newBilling(t)
	ctx := t.Context()
	must(t, b.Do(ctx, event(1), b.add(event(1))))
	announced, err := b.Last(ctx, "a/key")
	must(t, err)
	announced.Parking = "e2"
	must(t, b.Record(ctx, "a/key", announced))
	if got, err := b.Last(ctx, "a/key"); err != nil || got != announced {
		t.Errorf("the mark is %+v, want %+v, %v", got, announced, err)
	}
	if err := b.Do(ctx, event(2), b.add(event(2))); !errors.Is(err, consumer.ErrParking) {
		t.Errorf("event 2: %v", err)
	}
	must(t, b.Record(ctx, "a/key", announced.Next(event(2))))
	must(t, b.Record(ctx, "a/key", announced)) // too late
	must(t, b.Do(ctx, event(3), b.add(event(3))))
	b.want(t, 4, event(3))
}

func TestInbox(t *testing.T) {
	b := newBilling(t)
	ctx := t.Context()
	b.want(t, 0, nil)

	// The writes of a handler and the mark are stored together.
	wrong := errors.New("wrong")
	if err := b.Do(ctx, event(1), func(ctx context.Context, tx *firestore.Transaction) error {
		must(t, b.add(event(1))(ctx, tx))
		return wrong
	}); !errors.Is(err, wrong) {
		t.Errorf("a handler that fails: %v", err)
	}
	b.want(t, 0, nil)
	for _, n := range []int64{1, 2, 1, 2, 3} {
		must(t, b.Do(ctx, event(n), b.add(event(n))))
	}
	b.want(t, 6, event(3))

	// Processes that have not noticed that they lost the key handle the event once.
	var owners sync.WaitGroup
	for range 4 {
		owners.Go(func() {
			for {
				err := b.Do(ctx, event(4), b.add(event(4)))
				if err == nil || ctx.Err() != nil {
					return
				}
				t.Log("redelivered: ", err)
			}
		})
	}
	owners.Wait()
	b.want(t, 10, event(4))

	// A resubmitted event was dead-lettered before, so event 4 does not make it stale.
	resubmitted := event(1)
	resubmitted.Resubmission = "r1"
	handled := 0
	for range 2 {
		must(t, b.Do(ctx, resubmitted, func(context.Context, *firestore.Transaction) error { handled++; return nil }))
	}
	if handled != 1 {
		t.Errorf("the resubmitted event was handled %d times", handled)
	}

	// The Record call of the kit finds the mark and never moves it back.
	must(t, b.Record(ctx, "a/key", event(4).Mark()))
	must(t, b.Record(ctx, "a/key", event(2).Mark()))
	b.want(t, 10, event(4))
	must(t, b.Record(ctx, "a/key", event(5).Mark())) // as after a dead letter
	b.want(t, 10, event(5))

	testForks(t, b)

	// Consumers and keys have separate marks.
	shipping, err := firestoreinbox.New(b.client, "shipping", nil)
	must(t, err)
	for name, last := range map[string]func() (consumer.Mark, error){
		"another consumer": func() (consumer.Mark, error) { return shipping.Last(ctx, "a/key") },
		"another key":      func() (consumer.Mark, error) { return b.Last(ctx, "a") },
	} {
		if mark, err := last(); err != nil || mark != (consumer.Mark{}) {
			t.Errorf("%s: %+v, %v", name, mark, err)
		}
	}
	must(t, shipping.Do(ctx, event(1), b.add(event(1))))
	b.want(t, 11, event(5))

	// Marks have an expiry unless TTL is negative.
	forever, err := firestoreinbox.New(b.client, "billing", &firestoreinbox.Options{Collection: "forever", TTL: -1})
	must(t, err)
	must(t, forever.Record(ctx, "k", event(1).Mark()))
	for collection, want := range map[string]time.Duration{"feedboxInbox": 30 * 24 * time.Hour, "forever": 0} {
		marks, err := b.client.Collection(collection).Documents(ctx).GetAll()
		must(t, err)
		expires, _ := marks[0].Data()["expireAt"].(time.Time)
		if off := time.Until(expires) - want; want == 0 != expires.IsZero() || want > 0 && off.Abs() > time.Hour {
			t.Errorf("a mark in %s expires at %v", collection, expires)
		}
	}

	// Events without a sequence are compared by version and id.
	calls := 0
	bare := func(id string, version int64) *consumer.Event {
		return &consumer.Event{ID: id, Key: "bare", AggregateVersion: version}
	}
	for _, e := range []*consumer.Event{bare("a", 1), bare("a", 1), bare("b", 2), bare("a", 1), bare("c", 0)} {
		must(t, b.Do(ctx, e, func(context.Context, *firestore.Transaction) error { calls++; return nil }))
	}
	must(t, b.Record(ctx, "bare", bare("d", 3).Mark()))
	if last, err := b.Last(ctx, "bare"); calls != 3 || err != nil || last != bare("d", 3).Mark() {
		t.Errorf("%d calls of the handler, want 3; the mark %+v, %v", calls, last, err)
	}

	// A failed read is an error, and not a new key.
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := b.Last(ended, "a/key"); err == nil {
		t.Error("a failed read returned no error")
	}

	// Events of other publishers may have no id.
	must(t, b.Record(ctx, "bare", consumer.Mark{Sequence: 4}))
	must(t, b.Record(ctx, "bare", consumer.Mark{Sequence: 5}))
	if last, err := b.Last(ctx, "bare"); err != nil || last.Sequence != 5 {
		t.Errorf("the mark of an event without an id: %+v, %v", last, err)
	}

	for _, e := range []*consumer.Event{nil, {Key: "k"}, {ID: "e"}} {
		if err := b.Do(ctx, e, b.add(event(1))); err == nil {
			t.Errorf("%+v: no error", e)
		}
	}
	if err := b.Do(ctx, event(9), nil); err == nil {
		t.Error("Do accepts a nil handler")
	}
	if _, err := firestoreinbox.New(b.client, "billing", &firestoreinbox.Options{Collection: "a/b"}); err == nil {
		t.Error("New accepts the path of a document")
	}
}

func TestNewRequiresAClient(t *testing.T) {
	if _, err := firestoreinbox.New(nil, "billing", nil); err == nil {
		t.Error("New accepts a nil client")
	}
}

// The store has lost events 3 and 4, and gives their sequences to others.
func testForks(t *testing.T, b *billing) {
	t.Helper()
	inbox, err := firestoreinbox.New(b.client, "forks", nil)
	must(t, err)
	var handled []string
	do := func(e *consumer.Event) {
		t.Helper()
		must(t, inbox.Do(t.Context(), e, func(context.Context, *firestore.Transaction) error {
			handled = append(handled, fmt.Sprint(e.ID, " ", e.Replaced))
			return nil
		}))
	}
	last := func() consumer.Mark {
		t.Helper()
		m, err := inbox.Last(t.Context(), event(1).Key)
		must(t, err)
		return m
	}
	for n := range int64(4) {
		do(event(n + 1))
	}
	before, fork, dead := last(), event(3), event(2)
	fork.ID, dead.ID = "other", "dead"
	do(fork)
	do(fork)                                                        // redelivered
	must(t, inbox.Record(t.Context(), fork.Key, before.Next(fork))) // by the kit
	must(t, inbox.Record(t.Context(), fork.Key, before.Next(dead))) // by an owner that was replaced
	if want := []string{"e1 0", "e2 0", "e3 0", "e4 0", "other 2"}; !slices.Equal(handled, want) || last().EventID != "other" {
		t.Errorf("handled %q, want %q; the mark %+v", handled, want, last())
	}
	must(t, inbox.Record(t.Context(), dead.Key, last().Next(dead))) // a dead letter
	if m := last(); m.EventID != "dead" || m.Sequence != 2 {
		t.Errorf("after a dead letter that begins another history the mark is %+v", m)
	}
}

// Each operation on a silent server ends within its limit.
func TestOperationsEndIfTheServerIsSilent(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, b *firestoreinbox.Inbox) error{
		"last":   func(ctx context.Context, b *firestoreinbox.Inbox) error { _, err := b.Last(ctx, "k"); return err },
		"record": func(ctx context.Context, b *firestoreinbox.Inbox) error { return b.Record(ctx, "k", consumer.Mark{}) },
		"do": func(ctx context.Context, b *firestoreinbox.Inbox) error {
			return b.Do(ctx, event(1), func(context.Context, *firestore.Transaction) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := bufconn.Listen(1 << 16)
				defer func() { _ = listener.Close() }()
				client, err := firestore.NewClient(t.Context(), "p", option.WithEndpoint("passthrough:///memory"), option.WithoutAuthentication(),
					option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
					option.WithGRPCDialOption(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })))
				must(t, err)
				defer func() { _ = client.Close() }()
				b, err := firestoreinbox.New(client, "billing", &firestoreinbox.Options{Timeout: 3 * time.Second})
				must(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				began := time.Now()
				err = do(ctx, b)
				if took := time.Since(began); err == nil || took > 3*time.Second {
					t.Errorf("error %v after %v, want one within 3 s", err, took)
				}
			})
		})
	}
}

// noDatabase answers as a project without the database.
type noDatabase struct {
	pb.UnimplementedFirestoreServer
}

func (noDatabase) BatchGetDocuments(*pb.BatchGetDocumentsRequest, pb.Firestore_BatchGetDocumentsServer) error {
	return status.Error(codes.NotFound, "The database (default) does not exist for project inbox")
}

// A missing database is no missing mark. Otherwise each delivery would call the handler, and no mark be stored.
func TestMarkOfAMissingDatabaseIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 16)
		server := grpc.NewServer()
		pb.RegisterFirestoreServer(server, noDatabase{})
		go func() { _ = server.Serve(listener) }()
		conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
		must(t, err)
		client, err := firestore.NewClient(t.Context(), "inbox", option.WithGRPCConn(conn))
		must(t, err)
		b, err := firestoreinbox.New(client, "billing", nil)
		must(t, err)
		if m, err := b.Last(t.Context(), "k"); status.Code(err) != codes.NotFound {
			t.Errorf("mark %+v, %v; want the error of the database", m, err)
		}
		_ = client.Close()
		server.Stop()
	})
}
