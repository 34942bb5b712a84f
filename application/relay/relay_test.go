package relay_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
)

// lineDecoder reads events written as "key id sequence"; "-" is no event and a
// sequence of "?", or one with "?" behind it, is a bad one.
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

// broker records what is published. fail, if set, gives for a key the number of
// messages accepted before its error.
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

func TestHandleSendsEachKeyInOrderOfPosition(t *testing.T) {
	b := &broker{}
	var sum relay.Summary
	r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Handled: func(_ context.Context, s relay.Summary) { sum = s }}})
	page := changes("a a0 9@6", "a a2 2@7", "-", "b b1 1@7", "a a1 1@7", "b b2 2@8", "-")
	for i := range page {
		page[i].Timestamp = time.Unix(int64(max(i, 10-i)), 0)
	}
	page[3].Timestamp = time.Unix(3, 0)
	page[2].Timestamp = time.Unix(1, 0)
	failed := r.Handle(t.Context(), relay.Ownership{}, page)
	if failed != nil {
		t.Fatal(failed)
	}
	if diff := cmp.Diff(map[string][]string{"a": {"a0", "a1", "a2"}, "b": {"b1", "b2"}}, b.got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if want := (relay.Summary{First: true, Oldest: page[3].Timestamp}); sum != want {
		t.Errorf("summary %+v, want %+v", sum, want)
	}
	if r.Handle(t.Context(), relay.Ownership{}, changes("a a3 3")); sum.First {
		t.Error("the second page is called the first")
	}
}

func TestHandleWithoutEventsDoesNotCallThePublisher(t *testing.T) {
	called := publisherFunc(func([]relay.Group) error { return errors.New("must not be called") })
	r := newRelay(t, called, nil)
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("-", "-")); failed != nil {
		t.Fatal(failed)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, nil); failed != nil {
		t.Fatal(failed)
	}
}

type publisherFunc func(groups []relay.Group) error

func (f publisherFunc) Publish(_ context.Context, groups []relay.Group) error { return f(groups) }

func TestHandleNamesWhatWasNotAccepted(t *testing.T) {
	outage := &relay.Error{Class: relay.Outage, Reason: "busy"}
	b := &broker{fail: map[string]relay.KeyError{"a": {Sent: 1, Err: outage}}}
	r := newRelay(t, b, nil)
	failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "a a2 2", "?", "a a3 3", "c c1 1", "c c2 ?", "c c3 3", "a a4 ?", "?"))
	type failure struct {
		Index   int
		ID, Key string
		Held    bool
		Reason  string
	}
	var got []failure
	for _, f := range failed {
		got = append(got, failure{f.Index, f.ID, f.Key, f.Held, relay.ReasonOf(f.Err)})
	}
	want := []failure{
		{2, "a2", "a", false, "busy"},
		{3, "", "", false, "invalid_event"},
		{4, "a3", "a", true, "busy"},
		{6, "c2", "c", false, "invalid_event"},
		{7, "c3", "c", true, "invalid_event"},
		{8, "a4", "a", true, "busy"},
		{9, "", "", false, "invalid_event"}, // there is no order among those without a key
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"a": {"a1"}, "b": {"b1"}, "c": {"c1"}}, b.got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// TestHandleInterleaved compares the relay with a plain reading of the rule on random
// pages, handled one after the other so that reused memory would show.
func TestHandleInterleaved(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	b := &broker{}
	r := newRelay(t, b, nil)
	want := map[string][]string{}
	next := map[string]int{}
	total := 0
	for range 200 {
		var lines []string
		for range rng.IntN(60) {
			if rng.IntN(3) == 0 {
				lines = append(lines, "-")
				continue
			}
			key := "k" + strconv.Itoa(rng.IntN(20))
			next[key]++
			id := fmt.Sprintf("%s.%d", key, next[key])
			lines = append(lines, fmt.Sprintf("%s %s %d", key, id, next[key]))
			want[key] = append(want[key], id)
			total++
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes(lines...)); failed != nil {
			t.Fatal(failed)
		}
	}
	if diff := cmp.Diff(want, b.got); diff != "" || b.sent != total {
		t.Errorf("published %d of %d (-want +got):\n%s", b.sent, total, diff)
	}
}

func TestNewReportsAllFaults(t *testing.T) {
	for _, test := range []struct {
		decoder   relay.Decoder
		publisher relay.Publisher
	}{{nil, nil}, {lineDecoder{}, nil}, {nil, &broker{}}} {
		_, err := relay.New(test.decoder, test.publisher, nil)
		if err == nil || !strings.Contains(err.Error(), "decoder") || !strings.Contains(err.Error(), "publisher") {
			t.Errorf("error %v, want both faults", err)
		}
	}
}

func BenchmarkHandle(b *testing.B) {
	var page []relay.Change
	for i := range 1000 {
		page = append(page, relay.Change{Raw: fmt.Appendf(nil, "key%d id%d %d", i%100, i, i/100+1), LSN: int64(i)})
	}
	decoded := make([]relay.Message, len(page))
	for i := range page {
		decoded[i], _, _ = lineDecoder{}.Decode(page[i].Raw)
	}
	r, err := relay.New(&replay{messages: decoded}, publisherFunc(func([]relay.Group) error { return nil }), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if failed := r.Handle(b.Context(), relay.Ownership{}, page); failed != nil {
			b.Fatal(failed)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(page)), "ns/event")
}

// A page is handled in the memory of an earlier one.
func TestHandlingAllocatesNothing(t *testing.T) {
	page, p := make([]relay.Change, 300), &replay{}
	for i := range page {
		p.messages = append(p.messages, relay.Message{Key: fmt.Sprint("k", i%100), Sequence: int64(min(i/100+1, 2))})
		if i < 200 { // the others are aggregates
			p.messages[i].ID = "e"
		}
	}
	r, err := relay.New(p, publisherFunc(func([]relay.Group) error { return nil }), nil)
	if err != nil {
		t.Fatal(err)
	}
	least := math.Inf(1) // the race detector makes a pool forget now and then
	for range 100 {
		least = min(least, testing.AllocsPerRun(1, func() { r.Handle(t.Context(), relay.Ownership{}, page) }))
	}
	if least > 0 {
		t.Errorf("%v allocations", least)
	}
}

// A relay that has nothing to do keeps no document in memory.
func TestHandlingKeepsNoDocument(t *testing.T) {
	r, err := relay.New(aliasingDecoder{}, publisherFunc(func([]relay.Group) error { return nil }), nil)
	if err != nil {
		t.Fatal(err)
	}
	var documents []weak.Pointer[byte]
	func() {
		var page []relay.Change
		for _, line := range []string{"a 1", "a 2", "b 1", "= 2"} {
			raw := append(make([]byte, 0, 1<<10), line...) // by itself in memory
			page, documents = append(page, relay.Change{Raw: raw}), append(documents, weak.Make(&raw[0]))
		}
		r.Handle(t.Context(), relay.Ownership{}, page)
	}()
	runtime.GC() // the first one leaves in the pool what is there
	for i, d := range documents {
		if d.Value() != nil {
			t.Errorf("document %d is still in memory", i)
		}
	}
}

// replay gives out prepared messages, so that the relay alone is seen. One without an id is
// an aggregate's.
type replay struct {
	messages []relay.Message
	next     int
}

func (r *replay) Decode([]byte) (relay.Message, bool, error) {
	m := r.messages[r.next%len(r.messages)]
	r.next++
	return m, m.ID != "", nil
}
