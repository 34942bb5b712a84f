package operations_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page/operations"
)

// fake is a Port over fixed data. Methods that it does not implement panic.
type fake struct {
	operations.Port
	leases  []changefeed.Lease
	paused  bool // all ranges
	hosts   []changefeed.Host
	gates   []relay.Gate
	line    []relay.ParkedEvent
	entries []operator.Entry // of every timeline
	listed  operator.EventPage
	listErr error
	filter  operator.EventFilter // of the last list
	reads   atomic.Int64         // of leases
	parked  atomic.Int64         // reads of parked keys
	outage  atomic.Bool

	consumers    []operator.ConsumerKeys
	consumersErr error
	consumer     operations.Port // of any consumer
}

func (f *fake) ConsumerKeys(context.Context) ([]operator.ConsumerKeys, error) {
	return f.consumers, cmp.Or(f.consumersErr, f.err())
}

func (f *fake) Consumer(string) (operations.Port, error) { return f.consumer, nil }

var errOutage = errors.New("no reply of the store")

func (f *fake) err() error {
	if f.outage.Load() {
		return errOutage
	}
	return nil
}

func (f *fake) LeaseList(context.Context) ([]changefeed.Lease, bool, error) {
	f.reads.Add(1)
	return f.leases, f.paused, f.err()
}

func (f *fake) Hosts(context.Context) ([]changefeed.Host, error) { return f.hosts, nil }

func (f *fake) Lag(context.Context) ([]changefeed.RangeLag, error) {
	var lags []changefeed.RangeLag
	for _, l := range f.leases {
		lags = append(lags, changefeed.RangeLag{Lease: l, Known: true, Transactions: 2, Age: time.Second})
	}
	return lags, nil
}

func (f *fake) NewSnapshot(at time.Time, leases []changefeed.Lease, paused bool, lags map[string]changefeed.RangeLag) operator.Snapshot {
	s := operator.Snapshot{At: at}
	for _, l := range leases {
		s.Ranges = append(s.Ranges, operator.Range{Lease: l, Lag: lags[l.ID], Paused: paused})
		s.Behind, s.Oldest = s.Behind+lags[l.ID].Transactions, max(s.Oldest, lags[l.ID].Age)
	}
	return s
}

func (f *fake) EventTTL() time.Duration { return time.Hour }

func (f *fake) GatesFor(_ context.Context, reason string) ([]relay.Gate, error) {
	f.parked.Add(1)
	var found []relay.Gate
	for _, g := range f.gates {
		if reason == "" || g.Closing.Reason == reason {
			found = append(found, g)
		}
	}
	return found, f.err()
}

func (f *fake) Timeline(_ context.Context, key string, _ operator.Snapshot) (*operator.Timeline, error) {
	if f.entries == nil {
		return &operator.Timeline{Key: key, Events: []operator.Entry{{Status: operator.StatusWaiting}}}, nil
	}
	return &operator.Timeline{Key: key, Events: f.entries}, nil
}

func (f *fake) Events(_ context.Context, s operator.Snapshot, filter operator.EventFilter) (operator.EventPage, error) {
	f.filter = filter
	return f.listed, cmp.Or(f.listErr, f.err())
}

func (f *fake) Diagnose(_ context.Context, o operator.DoctorOptions) {
	found := operator.Fine("store", "replies")
	if f.err() != nil {
		found = found.Is(operator.FindingFailed, "")
	}
	o.Found(found)
}

func (f *fake) Gate(_ context.Context, key string) (relay.Gate, error) {
	for _, g := range f.gates {
		if g.Key == key {
			return g, nil
		}
	}
	return relay.Gate{}, fault.New(fault.NotFound, "", "no gate")
}

func (f *fake) ParkedKey(ctx context.Context, key string, limit int) (operator.ParkedKey, error) {
	g, err := f.Gate(ctx, key)
	return operator.ParkedKey{Gate: g, Line: f.line[:min(limit, len(f.line))]}, err
}

// acting is a port that plans rewinds and skips events. Gate returns after, one for each call, and
// NotFound then.
type acting struct {
	*fake
	planned, rewound []time.Time
	after            []relay.Gate
}

func (a *acting) PlanReplay(_ context.Context, from time.Time, _ time.Duration, _ func(int)) ([]operator.Resend, error) {
	a.planned = append(a.planned, from)
	return []operator.Resend{{Lease: "00-FF", Events: 1}}, nil
}

func (a *acting) Rewind(_ context.Context, from time.Time, _ ...string) error {
	a.rewound = append(a.rewound, from)
	return nil
}

func (*acting) FirstInLine(context.Context, string, string) error { return nil }

func (*acting) ParkedKey(context.Context, string, int) (operator.ParkedKey, error) {
	return operator.ParkedKey{Gate: relay.Gate{Key: "k", Events: 3, Version: "1"}, Line: []relay.ParkedEvent{{ID: "e1"}}}, nil
}

func (*acting) Note(_ context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	return relay.Gate{Key: key, Events: 3, Attempts: 2, Intent: &intent, Version: "2"}, nil
}

func (*acting) NoteAll(_ context.Context, gates []relay.Gate, _ relay.Intent, noted func(relay.Gate)) error {
	for _, g := range gates {
		noted(g)
	}
	return nil
}

func (a *acting) Gate(context.Context, string) (g relay.Gate, err error) {
	if len(a.after) == 0 {
		return g, fault.New(fault.NotFound, "", "no gate")
	}
	g, a.after = a.after[0], a.after[1:]
	return g, nil
}

// breaking is a port that answers some calls and fails all later ones.
type breaking struct {
	*editing
	operations.Letters
	left int
}

func newBreaking(calls int) *breaking {
	port, _ := newDeadPort()
	b := &breaking{editing: newEditing(`{}`), Letters: port.Letters, left: calls}
	b.gates = b.gates[:1]
	return b
}

func (b *breaking) reply() error {
	if b.left--; b.left < 0 {
		return errOutage
	}
	return nil
}

func (b *breaking) Consumer(string) (operations.Port, error) { return b, b.reply() }

func (b *breaking) Gate(ctx context.Context, key string) (relay.Gate, error) {
	if err := b.reply(); err != nil {
		return relay.Gate{}, err
	}
	return b.editing.Gate(ctx, key)
}

func (b *breaking) GatesFor(ctx context.Context, reason string) ([]relay.Gate, error) {
	if err := b.reply(); err != nil {
		return nil, err
	}
	return b.editing.GatesFor(ctx, reason)
}

func (b *breaking) ParkedKey(ctx context.Context, key string, limit int) (operator.ParkedKey, error) {
	if err := b.reply(); err != nil {
		return operator.ParkedKey{}, err
	}
	return b.editing.ParkedKey(ctx, key, limit)
}

func (b *breaking) FirstInLine(context.Context, string, string) error { return b.reply() }

func (b *breaking) CompareParked(context.Context, string) (operator.ParkedComparison, error) {
	return operator.ParkedComparison{}, b.reply()
}

func (b *breaking) ReadEditable(ctx context.Context, key, id string) (operator.EditableEvent, error) {
	if err := b.reply(); err != nil {
		return operator.EditableEvent{}, err
	}
	return b.editing.ReadEditable(ctx, key, id)
}

func (b *breaking) Note(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	if err := b.reply(); err != nil {
		return relay.Gate{}, err
	}
	return b.editing.Note(ctx, key, intent)
}

func (b *breaking) NoteAll(context.Context, []relay.Gate, relay.Intent, func(relay.Gate)) error {
	return b.reply()
}

func (b *breaking) ReplaceEvent(context.Context, string, string, []byte, string) error {
	return b.reply()
}

func (b *breaking) ReplaceParked(_ context.Context, key, _ string, _ []byte, _ string, intent relay.Intent) (relay.Gate, error) {
	return relay.Gate{Key: key, Intent: &intent}, b.reply()
}

func (b *breaking) Timeline(ctx context.Context, key string, s operator.Snapshot) (*operator.Timeline, error) {
	if err := b.reply(); err != nil {
		return nil, err
	}
	return b.editing.Timeline(ctx, key, s)
}

func (b *breaking) Events(context.Context, operator.Snapshot, operator.EventFilter) (operator.EventPage, error) {
	return operator.EventPage{}, b.reply()
}

func (b *breaking) PlanReplay(ctx context.Context, from time.Time, window time.Duration, progress func(int)) ([]operator.Resend, error) {
	if err := b.reply(); err != nil {
		return nil, err
	}
	return b.editing.PlanReplay(ctx, from, window, progress)
}

func (b *breaking) Rewind(context.Context, time.Time, ...string) error { return b.reply() }

func (b *breaking) CommandLeases(context.Context, operations.LeaseCommand, ...string) error {
	return b.reply()
}

func (b *breaking) PlanKeyReplay(_ context.Context, key string, _ time.Duration) (*operator.KeyReplay, error) {
	if err := b.reply(); err != nil {
		return nil, err
	}
	return &operator.KeyReplay{Key: key, Resend: operator.Resend{Events: 1}, Messages: make([]relay.Message, 1)}, nil
}

func (b *breaking) SendKey(context.Context, *operator.KeyReplay, func(int)) error { return b.reply() }

func (b *breaking) Consumers(ctx context.Context, management string) ([]string, error) {
	if err := b.reply(); err != nil {
		return nil, err
	}
	return b.Letters.Consumers(ctx, management)
}

func (b *breaking) ReadDeadLetters(ctx context.Context, consumer string, limit int) ([]operator.DeadLetter, bool, error) {
	if err := b.reply(); err != nil {
		return nil, false, err
	}
	return b.Letters.ReadDeadLetters(ctx, consumer, limit)
}

func (b *breaking) PlanResubmission(ctx context.Context, management, consumer string, all []operator.DeadLetter, chosen func(operator.DeadLetter) bool) (*operator.Resubmission, error) {
	if err := b.reply(); err != nil {
		return nil, err
	}
	return b.Letters.PlanResubmission(ctx, management, consumer, all, chosen)
}

func (b *breaking) Resubmit(context.Context, *operator.Resubmission, func()) ([]operator.LetterFailure, error) {
	return nil, b.reply()
}

func (b *breaking) Discard(context.Context, string, []operator.DeadLetter, func()) ([]operator.LetterFailure, error) {
	return nil, b.reply()
}

// crowd returns a fake with many ranges and parked keys.
func crowd(ranges, keys int) *fake {
	f := &fake{}
	for i := range ranges {
		r := changefeed.FeedRange{Min: fmt.Sprintf("%08X", i), Max: fmt.Sprintf("%08X", i+1)}
		f.leases = append(f.leases, changefeed.Lease{
			ID: "p.." + r.String(), Token: r.String(), Range: r, Owner: fmt.Sprintf("relay-%d", i%20), Epoch: 3, Expiry: time.Minute, Timestamp: time.Now(),
		})
	}
	for i := range keys {
		f.gates = append(f.gates, relay.Gate{
			Key: fmt.Sprintf("key-%05d", i), Events: 3, Arrivals: 3, Version: "v1",
			Closing: relay.Closing{Event: "e1", Reason: []string{"too_large", "invalid_event"}[i%2], Error: fmt.Sprintf("%01000d", i), At: time.Now()},
		})
	}
	return f
}
