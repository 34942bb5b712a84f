package changefeed

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// testWindow adds pages as a flow without former sessions does.
type testWindow struct{ *window }

func newTestWindow(o *Options, done func([]*page)) testWindow { return testWindow{newWindow(o, done)} }

func (w testWindow) add(src *Page) *page {
	lsn, changed := src.last()
	return w.window.add(src, 0, lsn, changed)
}

// Bytes and items that are done or held are released, so reading continues.
func TestWindowReleasesFinishedItems(t *testing.T) {
	var passed []string
	w := newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func(pages []*page) {
		for _, p := range pages {
			passed = append(passed, p.token)
		}
	})
	released := 0
	read := func(token string, items int) *page {
		src := &Page{Continuation: token, Bytes: 400, Items: make([]Item, items), Release: func() { released++ }}
		for i := range src.Items {
			src.Items[i] = Item{Raw: []byte("0123456789"), LSN: 7}
		}
		return w.add(src)
	}
	a, b, c := read("a", 2), read("b", 2), read("c", 3)
	if !w.full() {
		t.Error("1,200 bytes of 1,000 are in memory, and it is not full")
	}
	held := w.hold(a, &a.items[0])
	w.finish(a, 1)
	if released != 1 || w.bytes != 810 || w.full() {
		t.Errorf("%d pages released, %d bytes, with one item of the first page held", released, w.bytes)
	}
	w.finish(c, 3)
	w.finish(b, 2)
	if released != 3 || w.bytes != 10 || w.items != 1 || len(w.pages) != 2 || w.unsaved != 6 || len(passed) != 0 {
		t.Errorf("%d released, %d bytes, %d items, %d pages, %d ahead, passed %v", released, w.bytes, w.items, len(w.pages), w.unsaved, passed)
	}
	w.finishHeld(a, &held)
	if len(passed) != 2 || passed[1] != "c" || w.bytes != 0 || w.items != 0 || w.unsaved != 0 || len(w.pages) != 0 {
		t.Errorf("passed %v; %d bytes, %d items, %d ahead left", passed, w.bytes, w.items, w.unsaved)
	}
}

// The bound limits the redelivery after a crash.
func TestItemsAheadOfCheckpointAreBounded(t *testing.T) {
	w := newTestWindow(&Options{ReadAheadItems: 2, ReadAheadBytes: 1000}, func([]*page) {})
	read := func() *page { return w.add(&Page{Items: make([]Item, 1)}) }
	stuck := read()
	for range 2*aheadFactor - 1 {
		w.finish(read(), 1)
	}
	if w.full() {
		t.Error("full too early")
	}
	w.finish(read(), 1)
	if !w.full() {
		t.Errorf("%d items are handled ahead of the checkpoint, and it is not full", w.unsaved)
	}
	if len(w.pages) != 2 {
		t.Errorf("%d pages, want the one that is not done and one", len(w.pages))
	}
	w.finish(stuck, 1)
	if w.full() || w.unsaved != 0 {
		t.Errorf("%d items ahead of the checkpoint, which has passed all", w.unsaved)
	}
}

// Otherwise the count would become negative, and the bound would no longer hold.
func TestSavedItemsAreSubtractedOnce(t *testing.T) {
	w := newTestWindow(&Options{ReadAheadItems: 2, ReadAheadBytes: 1000}, func([]*page) {})
	stuck, after := w.add(&Page{Items: make([]Item, 1)}), w.add(&Page{Items: make([]Item, 1)})
	w.finish(after, 1)
	for range 2 {
		if w.save(0); w.unsaved != 0 {
			t.Errorf("%d items are not saved after a write, want none", w.unsaved)
		}
	}
	if w.finish(stuck, 1); w.unsaved != 0 {
		t.Errorf("%d items are not saved, although the checkpoint has passed all", w.unsaved)
	}
}

// LSNs may decrease after a merge, and lanes permute a page, so the highest LSN may be
// anywhere.
func TestMergedPagesKeepTheHighestLSN(t *testing.T) {
	for name, c := range map[string]struct{ first, second []Item }{
		"in order":     {[]Item{{LSN: 7, Timestamp: 70}}, []Item{{LSN: 9, Timestamp: 90}}},
		"out of order": {[]Item{{LSN: 9, Timestamp: 90}}, []Item{{LSN: 7, Timestamp: 70}}},
		"in one page":  {[]Item{{LSN: 9, Timestamp: 90}, {LSN: 7, Timestamp: 70}}, nil},
	} {
		var lsn, changed int64
		w := newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func(pages []*page) {
			last := pages[len(pages)-1]
			lsn, changed = last.lsn, last.changed
		})
		stuck := w.add(&Page{Items: []Item{{LSN: 1}}})
		first, second := w.add(&Page{Items: c.first}), w.add(&Page{Items: c.second})
		w.finish(second, len(c.second))
		w.finish(first, len(c.first))
		if len(w.pages) != 2 {
			t.Errorf("%s: %d pages, want the one that is not done and one", name, len(w.pages))
		}
		if w.finish(stuck, 1); lsn != 9 || changed != 90 {
			t.Errorf("%s: LSN %d of %d, want 9 of 90", name, lsn, changed)
		}
	}
}

// The memory of a page may be reused while one of its items is held.
func TestHeldDocumentIsACopy(t *testing.T) {
	raw, key := []byte("document"), []byte("key")
	w := newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func([]*page) {})
	p := w.add(&Page{Release: func() { clear(raw); clear(key) }, Items: []Item{{Raw: raw, Key: key}}})
	if held := w.hold(p, &p.items[0]); string(held.Raw) != "document" || string(held.Key) != "key" || raw[0] != 0 {
		t.Errorf("held %q of key %q", held.Raw, held.Key)
	}
}

func TestOldestIsAChangeThatIsNotDone(t *testing.T) {
	w := newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func([]*page) {})
	first := w.add(&Page{Items: []Item{{LSN: 1, Timestamp: 30}, {LSN: 2, Timestamp: 20}, {LSN: 3, Timestamp: 40}}})
	done := w.add(&Page{Items: []Item{{LSN: 4, Timestamp: 1}}})
	last := w.add(&Page{Items: []Item{{LSN: 5, Timestamp: 50}}})
	w.finish(done, 1)
	if i, ok := w.oldest(); !ok || i.LSN != 2 || i.Timestamp != 20 {
		t.Errorf("oldest %+v, want the second item of the first page", i)
	}
	w.finish(first, 3)
	if i, ok := w.oldest(); !ok || i.LSN != 5 || !w.busy() {
		t.Errorf("oldest %+v, want that of the last page; busy %t", i, w.busy())
	}
	w.finish(last, 1)
	if i, ok := w.oldest(); ok || w.busy() {
		t.Errorf("oldest %+v, and all are done; busy %t", i, w.busy())
	}
	a, b := w.add(&Page{Items: []Item{{LSN: 6}}}), w.add(&Page{Items: []Item{{LSN: 7, Timestamp: 60}}})
	w.add(&Page{Items: []Item{{LSN: 8, Timestamp: 70}}})
	w.finish(a, 1)
	w.finish(b, 1)
	if i, _ := w.oldest(); i.LSN != 8 {
		t.Errorf("oldest %+v, want the remaining change", i)
	}
}

// A merged page contains the dropped items of all its parts.
func TestOldestOfMergedPagesIsTheFirst(t *testing.T) {
	w := newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func([]*page) {})
	for lsn := range int64(3) {
		w.forget(w.add(&Page{Items: []Item{{LSN: lsn + 1, Timestamp: 10 * (lsn + 1)}}}))
	}
	if i, ok := w.oldest(); !ok || len(w.pages) != 1 || i.LSN != 1 || i.Timestamp != 10 {
		t.Errorf("oldest %+v of %d pages, want LSN 1 of one page", i, len(w.pages))
	}
}

// The checkpoint would otherwise wait for the merged page.
func TestOnlyDonePagesAreMerged(t *testing.T) {
	var passed []string
	w := newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func(pages []*page) {
		for _, p := range pages {
			passed = append(passed, p.token)
		}
	})
	read := func(token string, items int) *page {
		return w.add(&Page{Continuation: token, Items: make([]Item, items)})
	}
	a, b, c := read("a", 1), read("b", 1), read("c", 2)
	w.finish(b, 1) // beside one that is not begun
	w.finish(c, 1) // beside one that is done
	w.finish(a, 1)
	if !slices.Equal(passed, []string{"a", "b"}) || w.unsaved != 1 {
		t.Errorf("passed %v with %d items ahead, want a and b and one", passed, w.unsaved)
	}
	w.finish(c, 1)
	if !slices.Equal(passed, []string{"a", "b", "c"}) || w.unsaved != 0 {
		t.Errorf("passed %v with %d items ahead, want all", passed, w.unsaved)
	}
}

func TestDroppedWindowReleasesEachPageOnce(t *testing.T) {
	w := newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func([]*page) {})
	released := map[int]int{}
	read := func(n int) *page { return w.add(&Page{Items: make([]Item, 1), Release: func() { released[n]++ }}) }
	read(1)
	w.finish(read(2), 1)
	held := read(3)
	w.hold(held, &held.items[0])
	w.drop()
	if want := map[int]int{1: 1, 2: 1, 3: 1}; !maps.Equal(released, want) {
		t.Errorf("released %v, want each page once", released)
	}
}

// A page that is still in the lanes may have an item that is neither done nor held.
func TestAheadEndsBeforePageInTheLanes(t *testing.T) {
	w := newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func([]*page) {})
	read := func(lsn int64) *page { return w.add(&Page{Items: []Item{{LSN: lsn}, {LSN: lsn}}}) }
	check := func(lsn int64, seq uint64, done bool) {
		t.Helper()
		if l, s, d := w.settled(); l != lsn || s != seq || d != done {
			t.Errorf("settled up to LSN %d of page %d, any done %t; want %d, %d, %t", l, s, d, lsn, seq, done)
		}
	}
	check(0, 0, false)
	a, b, c := read(5), read(7), read(9)
	check(0, 0, false)
	w.hold(a, &a.items[0])
	w.forget(a)
	w.finish(c, 2)
	check(5, 1, false)
	w.finish(b, 1)
	check(5, 1, false)
	w.hold(b, &b.items[0])
	check(9, 3, true)

	w = newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func([]*page) {})
	a = read(5)
	w.hold(a, &a.items[0])
	w.finish(a, 1)
	w.add(&Page{}) // without items, so without an LSN
	check(5, 2, true)
}

func TestOnlyHeldItemsTakeMemory(t *testing.T) {
	w := newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func([]*page) {})
	p := w.add(&Page{Items: []Item{{LSN: 1, Raw: []byte("held")}, {LSN: 2, Raw: []byte("forgotten")}, {LSN: 3, Raw: []byte("done")}}})
	held := w.hold(p, &p.items[0])
	w.forget(p)
	w.finish(p, 1)
	if w.items != 1 || w.held != 1 || w.heldBytes != 4 {
		t.Errorf("%d items, %d held with %d bytes; want the held one with 4", w.items, w.held, w.heldBytes)
	}
	w.finishHeld(p, &held)
	if w.items != 0 || w.held != 0 || w.heldBytes != 0 {
		t.Errorf("%d items, %d held with %d bytes are left", w.items, w.held, w.heldBytes)
	}
}

// The others continue in the half that held keys leave.
func TestHeldKeysTogetherHaveHalfOfTheMemory(t *testing.T) {
	for name, o := range map[string]*Options{"items": {ReadAheadItems: 32, ReadAheadBytes: 1 << 20}, "bytes": {ReadAheadItems: 1000, ReadAheadBytes: 320}} {
		w := newTestWindow(o, func([]*page) {})
		p := w.add(&Page{Items: make([]Item, 40)})
		held := 0
		for ; held < 40 && w.takes(1, 10); held++ { // each is the only one of its key
			p.items[held].Raw = make([]byte, 10)
			w.hold(p, &p.items[held])
		}
		if held != 17 {
			t.Errorf("%s: %d items of ten bytes are held, want the half of 32 and one", name, held)
		}
	}
}

// A page that ends within a transaction is done when the next page is, because what is done ahead of
// the checkpoint is recorded by LSN.
func TestAheadEndsBeforeCutTransaction(t *testing.T) {
	w := newTestWindow(&Options{ReadAheadItems: 10, ReadAheadBytes: 1000}, func([]*page) {})
	held := w.add(&Page{Items: []Item{{LSN: 1}}})
	w.hold(held, &held.items[0])
	first, rest := w.add(&Page{Items: []Item{{LSN: 6}, {LSN: 7}}, Cut: true}), w.add(&Page{Items: []Item{{LSN: 7}}})
	w.finish(first, 2)
	if lsn, _, _ := w.settled(); lsn != 6 {
		t.Errorf("settled up to LSN %d while a part of 7 is in the lanes, want 6", lsn)
	}
	w.finish(rest, 1)
	if lsn, _, _ := w.settled(); lsn != 7 {
		t.Errorf("settled up to LSN %d, want 7", lsn)
	}
}

// More of the transaction is lag, and the next read does not wait.
func TestCutPageIsNotTheEnd(t *testing.T) {
	for _, cut := range []bool{true, false} {
		p := &Page{Items: []Item{{LSN: 7}}, EndLSN: 7, Cut: cut}
		var s lagState
		s.read(p)
		if more := s.endLSN > s.readLSN; more != cut || upToEnd(p) == cut {
			t.Errorf("cut %t: more is known %t, end of the feed %t", cut, more, upToEnd(p))
		}
	}
}

// A held key that changes often has a change on each page. Those that do not fit into memory are read
// again, and until then their pages must not fill it either.
func TestPagesOfAHeldKeyAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFlow(t, &Options{Observer: &Observer{}, ReadAheadItems: 32, MaxItems: 2, RetryMin: time.Hour, RetryMax: time.Hour}, Each(func(_ context.Context, item Item) error {
			if string(item.Key) == "held" {
				return errTest
			}
			return nil
		}))
		stored := int64(0)
		for lsn := range int64(10_000) {
			if f.window.full() {
				t.Fatalf("nothing is read after %d pages", lsn)
			}
			f.admit(&Page{Continuation: "x", Bytes: 10, Items: []Item{{LSN: lsn + 1, Key: []byte("held"), Raw: []byte("{}")}, {LSN: lsn + 1, Key: []byte("k"), Raw: []byte("{}")}}})
			synctest.Wait()
			stored = f.ahead(stored).LSN // as each write of the lease does
		}
		if n := len(f.window.pages); n > 100 {
			t.Errorf("%d pages are in memory for %d items held", n, f.window.held)
		}
		f.close()
	})
}
