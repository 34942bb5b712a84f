package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// settle sleeps and then waits until all goroutines of the bubble are blocked.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

type publisherCtx func(ctx context.Context, groups []relay.Group) error

func (f publisherCtx) Publish(ctx context.Context, groups []relay.Group) error { return f(ctx, groups) }

// lineDecoder reads events written as "key id sequence". "-" is not an event, and a sequence that
// ends in "?" makes it an invalid one.
type lineDecoder struct{}

func (lineDecoder) Decode(raw []byte) (relay.Message, bool, error) {
	parts := strings.Fields(string(raw))
	if parts[0] == "-" {
		return relay.Message{}, false, nil
	}
	if parts[0] == "?" {
		return relay.Message{}, false, relay.Refuse("invalid_event", "no partition key")
	}
	m := relay.Message{Key: parts[0], ID: parts[1], Action: "Changed", Body: raw}
	sequence, bad := strings.CutSuffix(parts[2], "?")
	m.Sequence, _ = strconv.ParseInt(sequence, 10, 64)
	if bad {
		return m, false, relay.Refuse("invalid_event", "event %s has no action", m.ID)
	}
	return m, true, nil
}

// broker records published messages. For a key in fail it accepts Sent messages and then returns
// Err.
type broker struct {
	mu   sync.Mutex
	got  map[string][]string // ids by key
	sent int
	fail map[string]relay.KeyError
}

func (b *broker) Publish(_ context.Context, groups []relay.Group) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.got == nil {
		b.got = make(map[string][]string)
	}
	var failed relay.PublishError
	for i, g := range groups {
		n := len(g.Messages)
		if f, ok := b.fail[g.Key]; ok {
			f.Group, n = i, f.Sent
			failed.Keys = append(failed.Keys, f)
		}
		for _, m := range g.Messages[:n] {
			if m.Key != g.Key {
				return fmt.Errorf("message of key %s in the group of %s", m.Key, g.Key)
			}
			b.got[g.Key] = append(b.got[g.Key], strings.Clone(m.ID))
			b.sent++
		}
	}
	if len(failed.Keys) > 0 {
		return &failed
	}
	return nil
}

func changes(lines ...string) []relay.Change {
	out := make([]relay.Change, len(lines))
	for i, line := range lines {
		lsn := int64(i/2 + 1)
		if at := strings.IndexByte(line, '@'); at >= 0 {
			lsn, _ = strconv.ParseInt(line[at+1:], 10, 64)
			line = line[:at]
		}
		out[i] = relay.Change{Raw: []byte(line), LSN: lsn}
	}
	return out
}

func newRelay(t *testing.T, p relay.Publisher, opts *relay.Options) *relay.Relay {
	t.Helper()
	r, err := relay.New(lineDecoder{}, p, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type publisherFunc func(groups []relay.Group) error

func (f publisherFunc) Publish(_ context.Context, groups []relay.Group) error { return f(groups) }

func withParked(mem relay.ParkedStore, opts relay.Options) *relay.Options {
	opts.Parked, opts.Now = mem, time.Now
	return &opts
}

// parkedIDs returns the ids and reasons of the parked events of key.
func parkedIDs(t *testing.T, mem *parkedtest.Memory, key string) []string {
	t.Helper()
	events, err := mem.First(t.Context(), key, 1000, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range events {
		ids = append(ids, e.ID+" "+e.Reason)
	}
	return ids
}

func deadLetter(line string, lsn int64, err error) relay.DeadLetter {
	return relay.DeadLetter{Change: relay.Change{Raw: []byte(line), LSN: lsn}, Attempts: 5, Err: err}
}

var (
	errBusy        = &relay.Error{Class: relay.Outage, Reason: "busy"}
	errUnreachable = &relay.Error{Class: relay.Outage, Reason: "unreachable"}
	errFull        = &relay.Error{Class: relay.Blocked, Reason: "entity_full"}
	errTooLarge    = &relay.Error{Class: relay.Refused, Reason: "too_large"}
	errNotAllowed  = &relay.Error{Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}
)

// failing makes the broker fail these keys, each with its own error.
func failing(err *relay.Error, keys ...string) map[string]relay.KeyError {
	fail := map[string]relay.KeyError{}
	for _, key := range keys {
		own := *err
		fail[key] = relay.KeyError{Err: &own}
	}
	return fail
}

// classes returns the event and class of each failure that is not held.
func classes(failed []relay.Failure) (list []string) {
	for _, f := range failed {
		if !f.Held {
			list = append(list, fmt.Sprintf("%s %s", f.ID, relay.ClassOf(f.Err)))
		}
	}
	return list
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// notBefore returns NotBefore of the first failure.
func notBefore(failed []relay.Failure) time.Time {
	e, _ := errors.AsType[*relay.Error](failed[0].Err)
	return e.NotBefore
}

// countingBroker is a broker that counts calls, groups and groups sent alone.
type countingBroker struct {
	broker
	calls, groups, alone int
}

func (b *countingBroker) Publish(ctx context.Context, groups []relay.Group) error {
	b.mu.Lock()
	b.calls++
	b.groups += len(groups)
	for _, g := range groups {
		if g.Alone {
			b.alone++
		}
	}
	b.mu.Unlock()
	return b.broker.Publish(ctx, groups)
}

// aliasingDecoder reads "key sequence" into strings that share the memory of raw, as
// the relay's real decoder does. Key "=" is that of an aggregate.
type aliasingDecoder struct{}

func (aliasingDecoder) Decode(raw []byte) (relay.Message, bool, error) {
	text := unsafe.String(unsafe.SliceData(raw), len(raw))
	key, number, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	return relay.Message{ID: text, Key: key, Action: "a", Body: raw, Sequence: n}, key != "=", err
}

// failures returns index, event and Held of each failure.
func failures(failed []relay.Failure) (list []string) {
	for _, f := range failed {
		list = append(list, fmt.Sprint(f.Index, " ", f.ID, " ", f.Held))
	}
	return list
}
