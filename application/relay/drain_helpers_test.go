package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// owner owns every range, or none while away is set.
type owner struct {
	away  atomic.Bool
	steps atomic.Int32
}

func (o *owner) Own(ctx context.Context, _ string, do func(context.Context) error) error {
	if o.steps.Add(1) > 100_000 {
		return errors.New("a drain has no end")
	}
	if o.away.Load() {
		return relay.ErrNotOwned
	}
	return do(ctx)
}

func newDrainer(t *testing.T, mem relay.DrainStore, p relay.Publisher, opts relay.DrainOptions, drained *reportLog) *relay.Drainer {
	t.Helper()
	return newDrainerOf(t, mem, &owner{}, p, opts, drained)
}

func newDrainerOf(t *testing.T, mem relay.DrainStore, ranges relay.Ranges, p relay.Publisher, opts relay.DrainOptions, drained *reportLog) *relay.Drainer {
	t.Helper()
	opts.Batch = 3
	opts.Drained = func(_ context.Context, d relay.DrainReport) {
		if drained != nil {
			drained.add(fmt.Sprintf("%s sent %d differ %d skip %v open %v %s", d.Key, d.Sent, d.Changed, d.Skipped, d.Opened, relay.ReasonOf(d.Err)))
		}
	}
	d, err := relay.NewDrainer(mem, ranges, newRelay(t, p, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// reportLog collects reports.
type reportLog struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *reportLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *reportLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// run runs d until the test is over.
func run(t *testing.T, d *relay.Drainer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func parkAll(t *testing.T, r *relay.Relay, key string, n int) {
	t.Helper()
	if err := r.Park(t.Context(), deadLetter(key+" "+key+"1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	for i := 2; i <= n; i++ {
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("%s %s%d %d", key, key, i, i))); failed != nil {
			t.Fatal(failed)
		}
	}
}

func gateOf(t *testing.T, mem *parkedtest.Memory, key string) relay.Gate {
	t.Helper()
	g, err := mem.Gate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func setIntent(t *testing.T, mem *parkedtest.Memory, key string, i relay.Intent) {
	t.Helper()
	if _, err := mem.SetIntent(t.Context(), key, i); err != nil {
		t.Fatal(err)
	}
}

// lease is an ownership of all ranges that can be gained and lost.
type lease struct {
	mu     sync.Mutex // guards the fields below
	owned  bool
	cancel context.CancelFunc // of the context given to do
}

func (l *lease) gain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owned = true
}

func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owned = false
	l.cancel()
}

func (l *lease) Own(ctx context.Context, _ string, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	owned := l.owned
	l.cancel = cancel
	l.mu.Unlock()
	if !owned {
		return relay.ErrNotOwned
	}
	return do(ctx)
}

// waitingDeadLetter returns the dead letter of an event that waited too long.
func waitingDeadLetter(line string, lsn int64) relay.DeadLetter {
	l := deadLetter(line, lsn, errBusy)
	l.Waiting = true
	return l
}

// reportedLetter returns the dead letter of an event that Handle reported as refused.
func reportedLetter(t *testing.T, o relay.Ownership, c relay.Change) relay.DeadLetter {
	t.Helper()
	failed := newRelay(t, publisherFunc(func([]relay.Group) error { return errTooLarge }), nil).Handle(t.Context(), o, []relay.Change{c})
	if len(failed) != 1 {
		t.Fatalf("failed %v", failed)
	}
	return relay.DeadLetter{Change: c, Attempts: 5, Err: failed[0].Err}
}

// hooked is a store of parked events that calls before first. An error replaces the call.
type hooked struct {
	*parkedtest.Memory
	before func(ctx context.Context, call string) error
}

func (m hooked) Intents(ctx context.Context) ([]relay.Gate, error) {
	return withHook(ctx, m, "Intents", func() ([]relay.Gate, error) { return m.Memory.Intents(ctx) })
}

func (m hooked) Gate(ctx context.Context, key string) (relay.Gate, error) {
	return withHook(ctx, m, "Gate", func() (relay.Gate, error) { return m.Memory.Gate(ctx, key) })
}

func (m hooked) Update(ctx context.Context, g relay.Gate) (relay.Gate, error) {
	return withHook(ctx, m, "Update", func() (relay.Gate, error) { return m.Memory.Update(ctx, g) })
}

func (m hooked) First(ctx context.Context, key string, limit, maxBytes int) ([]relay.ParkedEvent, error) {
	return withHook(ctx, m, "First", func() ([]relay.ParkedEvent, error) { return m.Memory.First(ctx, key, limit, maxBytes) })
}

func (m hooked) Remove(ctx context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	return withHook(ctx, m, "Remove", func() (relay.Gate, error) { return m.Memory.Remove(ctx, g, events, skipped) })
}

func (m hooked) Open(ctx context.Context, g relay.Gate) error {
	_, err := withHook(ctx, m, "Open", func() (bool, error) { return true, m.Memory.Open(ctx, g) })
	return err
}

func withHook[V any](ctx context.Context, m hooked, call string, then func() (V, error)) (v V, err error) {
	if err := m.before(ctx, call); err != nil {
		return v, err
	}
	return then()
}

// once returns a hook that calls do before the first such call.
func once(call string, do func()) func(context.Context, string) error {
	done := false
	return func(_ context.Context, name string) error {
		if name == call && !done {
			done = true
			do()
		}
		return nil
	}
}

// reports runs a drainer for an hour and returns its reports.
func reports(t *testing.T, mem relay.DrainStore, ranges relay.Ranges, p relay.Publisher, opts relay.DrainOptions) (list []relay.DrainReport) {
	t.Helper()
	opts.Batch = 3
	opts.Drained = func(_ context.Context, d relay.DrainReport) { list = append(list, d) }
	d, err := relay.NewDrainer(mem, ranges, newRelay(t, p, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := d.Run(ctx); err != nil {
		t.Error(err)
	}
	return list
}

// takeAll removes all parked events of key.
func takeAll(t *testing.T, mem *parkedtest.Memory, key string) {
	t.Helper()
	events, err := mem.First(t.Context(), key, 1000, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mem.Remove(t.Context(), gateOf(t, mem, key), events, nil); err != nil {
		t.Fatal(err)
	}
}

// parkWaiting parks one event per key, as one that waited too long.
func parkWaiting(t *testing.T, r *relay.Relay, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := r.Park(t.Context(), waitingDeadLetter(key+" "+key+"1 1", 1)); err != nil {
			t.Fatal(err)
		}
	}
}
