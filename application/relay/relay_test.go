package relay_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/tests/testenv"
)

func TestHandleSendsEachKeyInOrder(t *testing.T) {
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

func TestHandleWithoutEventsSkipsPublisher(t *testing.T) {
	called := publisherFunc(func([]relay.Group) error { return errors.New("must not be called") })
	r := newRelay(t, called, nil)
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("-", "-")); failed != nil {
		t.Fatal(failed)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, nil); failed != nil {
		t.Fatal(failed)
	}
}

func TestHandleReturnsFailedEvents(t *testing.T) {
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
		id, _, _ := strings.Cut(f.ID, "-id-") // derived from the document
		got = append(got, failure{f.Index, id, f.Key, f.Held, relay.ReasonOf(f.Err)})
	}
	want := []failure{
		{2, "a2", "a", false, "busy"},
		{3, "no", "", false, "invalid_event"},
		{4, "a3", "a", true, "busy"},
		{6, "c2", "c", false, "invalid_event"},
		{7, "c3", "c", true, "invalid_event"},
		{8, "a4", "a", true, "busy"},
		{9, "no", "", false, "invalid_event"}, // events without a key have no order
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"a": {"a1"}, "b": {"b1"}, "c": {"c1"}}, b.got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// Random pages are compared with a simple model. They are handled one after the other, so that an
// error in reused memory shows.
func TestHandleMatchesModel(t *testing.T) {
	rng := testenv.Random(t)
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

func TestNewReportsAllMissingPorts(t *testing.T) {
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

// A page reuses the memory of an earlier one.
func TestHandleDoesNotAllocate(t *testing.T) {
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
	least := math.Inf(1) // under the race detector a pool drops items at random
	for range 100 {
		least = min(least, testing.AllocsPerRun(1, func() { r.Handle(t.Context(), relay.Ownership{}, page) }))
	}
	if least > 0 {
		t.Errorf("%v allocations", least)
	}
}

// An idle relay retains no document.
func TestHandleRetainsNoDocument(t *testing.T) {
	r, err := relay.New(aliasingDecoder{}, publisherFunc(func([]relay.Group) error { return nil }), nil)
	if err != nil {
		t.Fatal(err)
	}
	var documents []weak.Pointer[byte]
	func() {
		var page []relay.Change
		for _, line := range []string{"a 1", "a 2", "b 1", "= 2"} {
			raw := append(make([]byte, 0, 1<<10), line...) // in its own memory block
			page, documents = append(page, relay.Change{Raw: raw}), append(documents, weak.Make(&raw[0]))
		}
		r.Handle(t.Context(), relay.Ownership{}, page)
	}()
	runtime.GC() // one GC keeps the content of the pool
	for i, d := range documents {
		if d.Value() != nil {
			t.Errorf("document %d is still in memory", i)
		}
	}
}

// replay returns prepared messages, so that a benchmark excludes decoding. One without an id is that
// of an aggregate.
type replay struct {
	messages []relay.Message
	next     int
}

func (r *replay) Decode([]byte) (relay.Message, bool, error) {
	m := r.messages[r.next%len(r.messages)]
	r.next++
	return m, m.ID != "", nil
}

// The accepted events of a failed key are not returned.
func TestHandleOmitsAcceptedEvents(t *testing.T) {
	b := &broker{fail: map[string]relay.KeyError{"a": {Sent: 2, Err: errTooLarge}}}
	failed := newRelay(t, b, nil).Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "a a2 2", "a a3 3", "a a4 4"))
	want(t, "failures", failures(failed), "2 a3 false", "3 a4 true")
}
