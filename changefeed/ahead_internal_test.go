package changefeed

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The id may be a number in another store, or absent.
func TestDocumentID(t *testing.T) {
	for raw, want := range map[string]string{`{"id":"a\"b"}`: `a"b`, `{"id":7}`: "7", `{"n":1}`: ""} {
		if got := documentID(&Item{LSN: 12, Raw: []byte(raw)}); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// Another product, or an earlier version of this package, moves the position and keeps the
// property. A rewind must not be undone by it.
func TestAheadIsIgnoredBesideAnotherPosition(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(doc map[string]any)
		kept bool
	}{
		"unchanged":         {func(map[string]any) {}, true},
		"moved back":        {func(doc map[string]any) { doc["ContinuationToken"] = `"3"` }, false},
		"no position":       {func(doc map[string]any) { doc["ContinuationToken"] = nil }, false},
		"another history":   {func(doc map[string]any) { doc["properties"].(map[string]any)["history"] = "B" }, false},
		"without any":       {func(doc map[string]any) { delete(doc["properties"].(map[string]any), "ahead") }, false},
		"of an old version": {func(doc map[string]any) { doc["properties"].(map[string]any)["ahead"] = `{"lsn":9}` }, false},
	} {
		l := liveLease("", "FF")
		l.Continuation, l.History = `"5"`, "A"
		l.Ahead = Ahead{LSN: 9, Held: []HeldKey{{Key: 1, LSN: 6, ID: "a", Refusals: 2}}}
		var doc map[string]any
		if err := json.Unmarshal(l.encode().Body, &doc); err != nil {
			t.Fatal(err)
		}
		c.edit(doc)
		got, err := decodeLease(Record{ID: l.ID, Body: mustMarshal(doc)})
		if kept := got.Ahead.LSN == 9 && slices.Equal(got.Ahead.Held, l.Ahead.Held); err != nil || kept != c.kept || !kept && got.Ahead.Held != nil {
			t.Errorf("%s: %+v, error %v; want it kept: %t", name, got.Ahead, err, c.kept)
		}
	}
}

// An earlier version counted attempts in a property of that name.
func TestAttemptsOfEarlierVersionAreDropped(t *testing.T) {
	l, err := decodeLease(Record{ID: "p..x", Body: []byte(`{"version":1,"FeedRange":{"Range":{"min":"","max":"FF"}},"properties":{"attempts":"[{\"d\":\"5:a\",\"n\":2}]"}}`)})
	if err != nil || l.properties != nil {
		t.Errorf("properties %v, error %v", l.properties, err)
	}
}

// pastFlow returns a flow that continues after a session which had done all up to LSN 9
// except key k from LSN 5 on.
func pastFlow(t *testing.T, o *Options, h Handler) *flow {
	f := newTestFlow(t, o, h)
	f.past = newPast(Ahead{LSN: 9, Held: []HeldKey{{Key: hashOf([]byte("k")), LSN: 5, ID: "five"}}}, f.manual())
	return f
}

func items(ids ...string) (all []Item) {
	for _, id := range ids {
		var i Item
		var key string
		if _, err := fmt.Sscanf(id, "%1s%d", &key, &i.LSN); err != nil {
			panic(err)
		}
		i.Key, i.Raw = []byte(key), fmt.Appendf(nil, `{"id":%q}`, map[bool]string{true: "five", false: id}[i.LSN == 5])
		all = append(all, i)
	}
	return all
}

// A change is skipped only if it is certain that it was done.
func TestOnlyDoneChangesAreSkipped(t *testing.T) {
	for name, c := range map[string]struct {
		read []Item
		want []int64 // LSNs that are delivered
	}{
		"others and the held key": {items("a1", "k4", "k5", "a6", "k7", "a9", "a10", "k11"), []int64{5, 7, 10, 11}},
		"LSNs decrease":           {items("a1", "a8", "a6", "a9"), []int64{6, 9}},
		"the key has changed":     {items("a1", "a4", "b5", "c6", "c9"), []int64{5, 6, 9}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []int64
			f := pastFlow(t, &Options{Observer: &Observer{}}, Each(func(_ context.Context, item Item) error {
				got = append(got, item.LSN)
				return nil
			}))
			f.admit(&Page{Items: c.read, Continuation: `"20"`})
			synctest.Wait()
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: delivered %v, want %v", name, got, c.want)
			}
			if l := f.keeper.snapshot(); l.Handled != int64(len(c.want)) || l.Continuation != `"20"` {
				t.Errorf("%s: %d handled, checkpoint %s", name, l.Handled, l.Continuation)
			}
			f.close()
		})
	}
}

// Two keys may have one hash. The changes of both are delivered again, because none may be skipped.
func TestKeysWithOneHashAreDeliveredFromTheFirstChange(t *testing.T) {
	for _, lsns := range [][2]int64{{5, 7}, {7, 5}} {
		held := []HeldKey{{Key: 1, LSN: lsns[0], ID: "a"}, {Key: 1, LSN: lsns[1], ID: "b"}}
		if from := newPast(Ahead{LSN: 9, Held: held}, false).from[1]; from != 5 {
			t.Errorf("held from %v: delivered again from LSN %d, want 5", lsns, from)
		}
	}
}

// It has one key for all items, so it would skip the held ones.
func TestManualHandlerSkipsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		f := pastFlow(t, &Options{Observer: &Observer{}}, Manual(func(_ context.Context, b *Batch, _ Checkpoint) error {
			n += len(b.Items)
			return errTest
		}))
		f.admit(&Page{Items: items("a1", "k5", "a6")})
		synctest.Wait()
		if a := f.ahead(0); n != 3 || a.LSN != 0 {
			t.Errorf("%d items delivered, %+v ahead of the checkpoint", n, a)
		}
		f.close()
	})
}

// What former sessions did stays in the record until this one has got past it.
func TestAheadOfFormerSessionIsKeptUntilItIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := true
		f := pastFlow(t, &Options{RetryMax: time.Minute, Observer: &Observer{}}, Each(func(_ context.Context, item Item) error {
			if string(item.Key) == "k" && fails {
				return errTest
			}
			return nil
		}))
		check := func(when string, lsn int64, held ...int64) {
			t.Helper()
			synctest.Wait()
			a := f.ahead(9)
			var got []int64
			for _, h := range a.Held {
				got = append(got, h.LSN)
			}
			if a.LSN != lsn || !slices.Equal(got, held) {
				t.Errorf("%s: ahead up to %d, held from %v; want %d, %v", when, a.LSN, got, lsn, held)
			}
		}
		check("nothing is read", 9, 5)
		f.admit(&Page{Items: items("a1", "a4")})
		check("before the held key", 9, 5)
		f.admit(&Page{Items: items("k5", "a6")})
		check("the held key", 9, 5)
		f.admit(&Page{Items: items("a9")})
		check("the last change", 9, 5)
		f.admit(&Page{Items: items("a12")})
		check("after it", 12, 5)
		f.admit(&Page{Items: items("a8")})
		check("LSNs decrease", 0)
		f.close()
	})
	synctest.Test(t, func(t *testing.T) {
		f := pastFlow(t, &Options{Observer: &Observer{}}, Each(func(_ context.Context, item Item) error { return nil }))
		f.admit(&Page{Items: items("a1", "a4")})
		f.passPast()
		synctest.Wait()
		if a := f.ahead(9); a.LSN != 0 || a.Held != nil {
			t.Errorf("the feed has ended, all is done, and the record keeps %+v", a)
		}
		f.close()
	})
	synctest.Test(t, func(t *testing.T) {
		f := pastFlow(t, &Options{Observer: &Observer{}}, Each(func(_ context.Context, item Item) error { return nil }))
		f.past = newPast(Ahead{LSN: 1}, false)
		if a := f.ahead(0); a.LSN != 1 {
			t.Errorf("the first change of the container was done, and the record has %+v", a)
		}
		f.close()
	})
	synctest.Test(t, func(t *testing.T) {
		f := pastFlow(t, &Options{Observer: &Observer{}}, Each(func(_ context.Context, item Item) error { return nil }))
		f.past = newPast(Ahead{LSN: 5, Held: []HeldKey{{Key: hashOf([]byte("k")), LSN: 7, ID: "k7", Refusals: 2}}}, false)
		f.admit(&Page{Items: items("a4", "a6")})
		synctest.Wait()
		if a := f.ahead(5); len(a.Held) != 1 || a.Held[0].Refusals != 2 {
			t.Errorf("before the refused document is read again, the record has %+v", a)
		}
		f.close()
	})
}

// Keys may be refused by the thousand. The record keeps what it has room for and never takes
// back what it said.
func TestRecordOfHeldKeysIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFlow(t, &Options{RetryMax: time.Minute, ReadAheadItems: 10_000, Observer: &Observer{}}, Each(func(_ context.Context, item Item) error {
			if string(item.Key) == "z" {
				return nil
			}
			return Refuse(errTest)
		}))
		var page Page
		for lsn := range int64(2000) {
			page.Items = append(page.Items, Item{LSN: lsn + 1, Key: fmt.Append(nil, lsn), Raw: fmt.Appendf(nil, `{"id":"%d"}`, lsn+1)})
		}
		page.Items = append(page.Items, Item{LSN: 3000, Key: []byte("z")})
		f.admit(&page)
		synctest.Wait()
		a := f.ahead(0)
		last := a.Held[len(a.Held)-1].LSN
		if size := len(mustMarshal(a)); size > maxHeldBytes || len(a.Held) < 300 || a.LSN != last || last != int64(len(a.Held)) {
			t.Errorf("%d keys, %d bytes, ahead up to %d, the last key from %d", len(a.Held), size, a.LSN, last)
		}
		if f.window.unsaved != 1 {
			t.Errorf("%d items are handled and not in the record, want 1", f.window.unsaved)
		}
		if b := f.ahead(1500); b.LSN != 1500 || len(b.Held) != 1500 {
			t.Errorf("ahead up to %d with %d keys, and the record has 1500", b.LSN, len(b.Held))
		}
		f.close()
	})
}
