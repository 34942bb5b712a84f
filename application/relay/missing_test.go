package relay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
)

// aggregateDecoder is a lineDecoder that also reads aggregates, "= key sequence", and
// documents with a sequence and without a key, "=  sequence".
type aggregateDecoder struct{ lineDecoder }

func (d aggregateDecoder) Decode(raw []byte) (relay.Message, bool, error) {
	if line, ok := strings.CutPrefix(string(raw), "= "); ok {
		m := relay.Message{}
		key, sequence, _ := strings.Cut(line, " ")
		m.Key = key
		m.Sequence, _ = strconv.ParseInt(sequence, 10, 64)
		return m, false, nil
	}
	return d.lineDecoder.Decode(raw)
}

func TestMissingEventsAreReportedOnce(t *testing.T) {
	var missing []string
	r, err := relay.New(aggregateDecoder{}, &broker{}, &relay.Options{Observer: relay.Observer{Missing: func(_ context.Context, m relay.Missing) {
		missing = append(missing, fmt.Sprintf("%s %d-%d %v", m.Key, m.First, m.Last, m.Lost))
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		page []string
		want []string
	}{
		{[]string{"a a1 1", "= a 1"}, nil},
		{[]string{"a a2 2", "a a3 3", "= a 3"}, nil},
		{[]string{"a a2 2", "a a3 3", "= a 3"}, nil},           // the page again
		{[]string{"a a6 6", "= a 6"}, []string{"a 4-5 true"}},  // two expired
		{[]string{"a a6 6", "= a 6"}, nil},                     // reported once
		{[]string{"= a 9"}, []string{"a 7-9 true"}},            // the last ones expired
		{[]string{"= a 9"}, nil},                               // reported once
		{[]string{"a a10 10", "= a 10"}, nil},                  // and known from then on
		{[]string{"a a1 1"}, nil},                              // an early page again
		{[]string{"a a11 11"}, nil},                            // does not reset the history
		{[]string{"= b 4"}, []string{"b 0-4 true"}},            // a key without a history
		{[]string{"c c7 7", "= c 8"}, []string{"c 8-8 true"}},  // its end is missing
		{[]string{"d d5 5", "d d7 7"}, []string{"d 6-6 true"}}, // inside a page
		{[]string{"e e2 ?", "e e3 3", "= e 3"}, nil},           // unreadable, but present
		{[]string{"e e4 ?", "e e5 5", "= e 5"}, nil},
		{[]string{"e e6 ?", "= e 6"}, nil},
		{[]string{"h h4 ?", "= h 4"}, nil}, // present, whatever its sequence
		{[]string{"h h5 5", "= h 5"}, nil},
		{[]string{"h h6 ?", "h h7 7", "h h9 9", "= h 9"}, []string{"h 8-8 true"}}, // the unreadable event counts as one
		{[]string{"f f1 1", "f f3 3", "= f 3", "g g1 1"}, []string{"f 2-2 true"}},
	} {
		missing = nil
		_ = r.Handle(t.Context(), relay.Ownership{Lease: "l", Epoch: 1, Resumed: true}, changes(step.page...))
		if diff := cmp.Diff(step.want, missing); diff != "" {
			t.Errorf("page %v (-want +got):\n%s", step.page, diff)
		}
	}
}

// Before the first checkpoint, events that the owner never saw may have been sent. Events missing
// after one that it saw were not.
func TestMissingBeforeFirstCheckpointIsNotLost(t *testing.T) {
	var missing []relay.Missing
	r, err := relay.New(aggregateDecoder{}, &broker{}, &relay.Options{Observer: relay.Observer{Missing: func(_ context.Context, m relay.Missing) {
		missing = append(missing, m)
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Handle(t.Context(), relay.Ownership{Lease: "l", Epoch: 1}, changes("= a 4", "b b1 1", "b b3 3", "= b 5", "=  7"))
	want := []relay.Missing{{Key: "b", First: 2, Last: 2, Lost: true}, {Key: "a", Last: 4}, {Key: "b", First: 4, Last: 5, Lost: true}}
	if diff := cmp.Diff(want, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestKeyHistoryIsBounded(t *testing.T) {
	reported := 0
	r, err := relay.New(aggregateDecoder{}, &broker{}, &relay.Options{Observer: relay.Observer{
		Missing: func(context.Context, relay.Missing) { reported++ },
	}})
	if err != nil {
		t.Fatal(err)
	}
	const limit = 100_000 // keys remembered at least; twice as many at most
	lines := make([]string, limit/10)
	for n := range 25 { // half of the keys that are remembered at least were moved to the older half
		for i := range lines {
			lines[i] = fmt.Sprintf("k%d e 5", n*len(lines)+i)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes(lines...)); failed != nil {
			t.Fatal(failed)
		}
	}
	for _, key := range []string{"k249999", fmt.Sprint("k", 250_000-limit), "k3"} {
		_ = r.Handle(t.Context(), relay.Ownership{}, changes(key+" e 9"))
	}
	if reported != 2 {
		t.Errorf("%d gaps found, want those of the two keys seen lately", reported)
	}
}

func TestRetentionLevels(t *testing.T) {
	for age, want := range map[time.Duration]relay.Level{
		0: relay.Safe, 60*time.Hour - 1: relay.Safe, 60 * time.Hour: relay.Warning, 120*time.Hour - 1: relay.Warning,
		120 * time.Hour: relay.Critical, 1000 * time.Hour: relay.Critical,
	} {
		if got := relay.LevelOf(age, 240*time.Hour); got != want {
			t.Errorf("%v is %v, want %v", age, got, want)
		}
	}
	// feedbox lag -o json has these texts.
	if got := fmt.Sprint(relay.Safe, relay.Warning, relay.Critical); got != "safe warning critical" {
		t.Errorf("the levels are %s", got)
	}
	if got := relay.LevelOf(1e18, -1); got != relay.Safe {
		t.Errorf("without expiry %v, want safe", got)
	}
}

// The history of a key before the range was lost does not cover the events that another owner sent
// in between.
func TestKeyHistoryResetsWithOwnership(t *testing.T) {
	var missing []string
	r, err := relay.New(aggregateDecoder{}, &broker{}, &relay.Options{Observer: relay.Observer{Missing: func(_ context.Context, m relay.Missing) {
		missing = append(missing, fmt.Sprintf("%s %d-%d", m.Key, m.First, m.Last))
	}}})
	if err != nil {
		t.Fatal(err)
	}
	handle := func(epoch int64, lines ...string) {
		t.Helper()
		if failed := r.Handle(t.Context(), relay.Ownership{Lease: "l", Epoch: epoch, Resumed: true}, changes(lines...)); failed != nil {
			t.Fatal(failed)
		}
	}
	handle(1, "a a1 1", "= a 1", "b b1 1")
	handle(3, "a a7 7", "= a 7", "b b5 5") // 2 to 6 and 2 to 4 were sent in epoch 2
	if len(missing) > 0 {
		t.Errorf("reported to be missing: %q", missing)
	}
	handle(3, "a a9 9", "= a 9")
	if !cmp.Equal(missing, []string{"a 8-8"}) {
		t.Errorf("reported to be missing: %q, want a 8-8", missing)
	}
}

// Remembered keys must not alias a document, because the feed reuses the memory of a page.
func TestKeyHistoryDoesNotAliasPage(t *testing.T) {
	r, err := relay.New(aliasingDecoder{}, &broker{}, &relay.Options{Observer: relay.Observer{Missing: func(_ context.Context, m relay.Missing) {
		t.Errorf("%s: %d to %d are reported to be missing", m.Key, m.First, m.Last)
	}}})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	memory := [][]byte{make([]byte, 4), make([]byte, 4)} // used in turn
	for n := 1; n < 100; n++ {
		for key := 'a'; key <= 'z'; key++ {
			raw := memory[rnd.IntN(2)]
			raw = raw[:copy(raw, fmt.Sprintf("%c %d", key, n))]
			if failed := r.Handle(t.Context(), relay.Ownership{}, []relay.Change{{Raw: raw, LSN: int64(n)}}); failed != nil {
				t.Fatal(failed)
			}
		}
	}
}
