package relay_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// An event that cannot be read tells no sequence. Among those of its transaction it stays
// where the feed has it: what stands before it is sent, for its caller takes that as done.
func TestAnUnreadableEventStaysInItsPlace(t *testing.T) {
	b := &broker{}
	page := changes("a a1 1", "a a2 2", "a a3 ?", "a a4 4", "a a5 5")
	for i := range page {
		page[i].LSN = 7
	}
	failed := newRelay(t, b, nil).Handle(t.Context(), relay.Ownership{}, page)
	if diff := cmp.Diff([]string{"a1", "a2"}, b.got["a"]); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"2 a3 false", "3 a4 true", "4 a5 true"}, failures(failed)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// An event that cannot be sent stays in its place also if it tells its sequence.
func TestABadEventThatTellsItsSequenceStaysInItsPlace(t *testing.T) {
	b := &broker{}
	failed := newRelay(t, b, nil).Handle(t.Context(), relay.Ownership{}, changes("a a1 1@7", "a a9 9?@7", "a a2 2@7"))
	want(t, "sent", b.got["a"], "a1")
	want(t, "failures", failures(failed), "1 a9 false", "2 a2 true")
}

// Where the feed has a transaction in another order than its sequence, the event that was
// refused is named, not the first that waits for it.
func TestTheRefusedEventIsNamedWhateverTheFeedsOrder(t *testing.T) {
	b := &broker{fail: map[string]relay.KeyError{"a": {Sent: 1, Err: errTooLarge}}}
	page := changes("a a3 3", "a a1 1", "a a2 2")
	for i := range page {
		page[i].LSN = 7
	}
	failed := newRelay(t, b, nil).Handle(t.Context(), relay.Ownership{}, page)
	if diff := cmp.Diff([]string{"0 a3 true", "2 a2 false"}, failures(failed)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// The two sides of a merge need not count alike. An LSN that falls does not turn the
// order of the feed around, also not within a page.
func TestTheFeedsOrderStandsOverTheLSN(t *testing.T) {
	b := &broker{}
	page := changes("a a1 1@90", "b b1 1@91", "a a3 3@92", "a a2 2@92", "a a5 5@4", "a a4 4@4", "b b2 2@3", "a a6 6@5", "a a7 ?@2", "a a8 8@1")
	failed := newRelay(t, b, nil).Handle(t.Context(), relay.Ownership{}, page)
	if diff := cmp.Diff(map[string][]string{"a": {"a1", "a2", "a3", "a4", "a5", "a6"}, "b": {"b1", "b2"}}, b.got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"8 a7 false", "9 a8 true"}, failures(failed)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// failures shows the failures of a page: index, event, held.
func failures(failed []relay.Failure) (list []string) {
	for _, f := range failed {
		list = append(list, fmt.Sprint(f.Index, " ", f.ID, " ", f.Held))
	}
	return list
}

// placedDecoder tells the LSN of an event, as a decoder of documents that have it does.
type placedDecoder struct{ lineDecoder }

func (d placedDecoder) Decode(raw []byte) (relay.Message, bool, error) {
	m, isEvent, err := d.lineDecoder.Decode(raw)
	m.LSN = 100 + m.Sequence
	return m, isEvent, err
}

// Where the feed does not tell an LSN that of the document stands, also for an event that
// is parked: without one a gate would not know what is done.
func TestTheLSNOfADocumentStandsWhereTheFeedTellsNone(t *testing.T) {
	lot := parkedtest.NewMemory()
	r, err := relay.New(placedDecoder{}, &broker{}, &relay.Options{Parked: lot})
	if err != nil {
		t.Fatal(err)
	}
	for lsn, want := range map[int64]int64{0: 105, 7: 7} {
		key := fmt.Sprint("k", lsn)
		if err := r.Park(t.Context(), letter(key+" e 5", lsn, errTooLarge)); err != nil {
			t.Fatal(err)
		}
		events, err := lot.First(t.Context(), key, 1)
		if err != nil || len(events) != 1 || events[0].LSN != want {
			t.Errorf("the feed tells %d: parked %+v, %v; want LSN %d", lsn, events, err, want)
		}
	}
}
