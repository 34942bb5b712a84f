package relay_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// An event that cannot be read has neither ordinal nor sequence. It follows the event that the feed
// returned before it, and the other events of the transaction are sorted around it.
func TestUnreadableEventFollowsItsPredecessor(t *testing.T) {
	for name, test := range map[string]struct{ page, sent, failed []string }{
		"in order": {
			[]string{"a a1 1@7", "a a2 2@7", "a a3 ?@7", "a a4 4@7", "a a5 5@7"},
			[]string{"a1", "a2"},
			[]string{"2 a3 false", "3 a4 true", "4 a5 true"},
		},
		"out of order": {
			[]string{"a a5 5@7", "a a2 2@7", "a a3 ?@7", "a a4 4@7", "a a1 1@7"},
			[]string{"a1", "a2"},
			[]string{"0 a5 true", "2 a3 false", "3 a4 true"},
		},
		"impossible sequence": {
			[]string{"a a1 1@7", "a a2 2@7", "a a3 -1?@7", "a a4 4@7"},
			[]string{"a1", "a2"},
			[]string{"2 a3 false", "3 a4 true"},
		},
		"first of its transaction": {
			[]string{"a a0 0@6", "a a3 ?@7", "a a1 1@7"},
			[]string{"a0"},
			[]string{"1 a3 false", "2 a1 true"},
		},
	} {
		b := &broker{}
		failed := newRelay(t, b, nil).Handle(t.Context(), relay.Ownership{}, changes(test.page...))
		want(t, name+", sent", b.got["a"], test.sent...)
		want(t, name+", failures", failures(failed), test.failed...)
	}
}

// An invalid event whose sequence is known has the place of its sequence.
func TestInvalidEventIsSortedBySequence(t *testing.T) {
	b := &broker{}
	failed := newRelay(t, b, nil).Handle(t.Context(), relay.Ownership{}, changes("a a1 1@7", "a a9 9?@7", "a a2 2@7"))
	want(t, "sent", b.got["a"], "a1", "a2")
	want(t, "failures", failures(failed), "1 a9 false")
}

// ordinalDecoder reads events written as "key id ordinal sequence".
type ordinalDecoder struct{}

func (ordinalDecoder) Decode(raw []byte) (relay.Message, bool, error) {
	m := relay.Message{Action: "Changed", Body: raw}
	_, err := fmt.Sscan(string(raw), &m.Key, &m.ID, &m.Ordinal, &m.Sequence)
	return m, true, err
}

// The events of a transaction are sent by ordinal, else by sequence, else by id, in whatever order
// the feed returns them. Events at an unknown place keep the order of the feed.
func TestTransactionIsSentInItsOrder(t *testing.T) {
	for name, test := range map[string]struct {
		page []string
		want []string
	}{
		"ordinals":  {[]string{"k a 3 1@7", "k b 2 3@7", "k c 1 2@7"}, []string{"c", "b", "a"}},
		"sequences": {[]string{"k a 0 3@7", "k b 0 2@7", "k c 0 1@7"}, []string{"c", "b", "a"}},
		"ids":       {[]string{"k c 0 0@7", "k a 0 0@7", "k b 0 0@7"}, []string{"a", "b", "c"}},
		"no LSN":    {[]string{"k b 2 0@0", "k c 1 0@0", "k a 2 0@0"}, []string{"b", "c", "a"}},
	} {
		b := &broker{}
		r, err := relay.New(ordinalDecoder{}, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes(test.page...)); failed != nil {
			t.Errorf("%s: %v", name, failed)
		}
		want(t, name, b.got["k"], test.want...)
	}
}

// If the feed returns a transaction out of sequence, the failure names the refused event and not the
// first one that waits for it.
func TestRefusedEventIsReportedInAnyFeedOrder(t *testing.T) {
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

// The LSNs of the two sides of a merge need not be comparable. A falling LSN does not change the
// order of the feed, even within a page.
func TestFeedOrderOverridesLSN(t *testing.T) {
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

// placedDecoder returns messages with an LSN, as a decoder does for documents that contain it.
type placedDecoder struct{ lineDecoder }

func (d placedDecoder) Decode(raw []byte) (relay.Message, bool, error) {
	m, isEvent, err := d.lineDecoder.Decode(raw)
	m.LSN = 100 + m.Sequence
	return m, isEvent, err
}

// If the feed has no LSN, that of the document is used, also for parked events, because the progress
// of a gate needs one.
func TestDocumentLSNReplacesMissingFeedLSN(t *testing.T) {
	mem := parkedtest.NewMemory()
	r, err := relay.New(placedDecoder{}, &broker{}, &relay.Options{Parked: mem})
	if err != nil {
		t.Fatal(err)
	}
	for lsn, want := range map[int64]int64{0: 105, 7: 7} {
		key := fmt.Sprint("k", lsn)
		if err := r.Park(t.Context(), deadLetter(key+" e 5", lsn, errTooLarge)); err != nil {
			t.Fatal(err)
		}
		events, err := mem.First(t.Context(), key, 1, 1<<30)
		if err != nil || len(events) != 1 || events[0].LSN != want {
			t.Errorf("the feed tells %d: parked %+v, %v; want LSN %d", lsn, events, err, want)
		}
	}
}
