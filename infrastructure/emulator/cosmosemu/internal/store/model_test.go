package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/tests/testenv"
)

// model is the expected content of the store.
type model struct {
	items map[string]modelItem // by partition key and id
	lsns  map[string]uint64    // by range
	now   time.Time
}

type modelItem struct {
	pk, id  string
	n       int
	lsn     uint64
	created int // order of insertion
	dies    time.Time
}

func (m *model) live(key string) (modelItem, bool) {
	item, ok := m.items[key]
	return item, ok && (item.dies.IsZero() || m.now.Before(item.dies))
}

// world applies the same random operations to a store and its model.
type world struct {
	t       *testing.T
	r       *rand.Rand
	s       *Store
	fs      vfs.FS
	c       *Container
	m       model
	created int
}

// Reads, scans and feeds agree with the model after random writes, failed batches,
// deletions, expiry, splits, merges and restarts.
func TestStoreFollowsItsModel(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprintf("durable %v", durable), func(t *testing.T) {
			w := &world{t: t, r: testenv.Random(t), m: model{items: make(map[string]modelItem), lsns: map[string]uint64{"0": 0, "1": 0}, now: time.Unix(1_800_000_000, 0)}}
			if durable {
				w.fs = vfs.NewMem()
			}
			w.open()
			defer func() {
				if err := w.s.Close(); err != nil {
					t.Error(err)
				}
			}()
			for step := range 400 {
				w.step()
				if step%10 == 0 {
					w.check()
				}
			}
			w.check()
		})
	}
}

func (w *world) open() {
	w.t.Helper()
	dir := ""
	if w.fs != nil {
		dir = "data"
	}
	s, err := Open(Options{Dir: dir, FS: w.fs, Now: func() time.Time { return w.m.now }, Sweep: -1})
	if err != nil {
		w.t.Fatal(err)
	}
	w.s = s
	db, err := s.Database("db")
	if errors.Is(err, ErrNotFound) {
		if db, err = s.CreateDatabase("db"); err == nil {
			w.c, err = s.CreateContainer(db, Definition{ID: "c", Paths: []document.Path{{"pk"}}, KeyVersion: 2, DefaultTTL: -1}, 2)
		}
	} else if err == nil {
		w.c, err = s.Container(db, "c")
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) step() {
	switch n := w.r.IntN(100); {
	case n < 4:
		w.reshape()
	case n < 6 && w.fs != nil:
		if err := w.s.Close(); err != nil {
			w.t.Fatal(err)
		}
		w.open()
	case n < 10:
		w.m.now = w.m.now.Add(time.Duration(w.r.IntN(5000)) * time.Millisecond)
	case n < 14:
		if _, err := w.c.sweep(position{}); err != nil {
			w.t.Fatal(err)
		}
	default:
		w.transaction()
	}
}

func (w *world) reshape() {
	t := w.c.Topology()
	i := w.r.IntN(len(t.Ranges))
	var err error
	if len(t.Ranges) < 6 {
		err = w.c.Split(t.Ranges[i].ID, nil)
		w.m.lsns[strconv.Itoa(t.NextRange)] = w.m.lsns[t.Ranges[i].ID]
		w.m.lsns[strconv.Itoa(t.NextRange+1)] = w.m.lsns[t.Ranges[i].ID]
	} else if i > 0 {
		err = w.c.Merge(t.Ranges[i-1].ID, t.Ranges[i].ID)
		w.m.lsns[strconv.Itoa(t.NextRange)] = max(w.m.lsns[t.Ranges[i-1].ID], w.m.lsns[t.Ranges[i].ID])
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

var errAbort = errors.New("abort")

// transaction makes a few writes to one partition, and rolls back one in five.
func (w *world) transaction() {
	pk := "pk" + strconv.Itoa(w.r.IntN(12))
	part := NewPartition(epk.Key{epk.String(pk)}, epk.V2)
	rng := w.c.Topology().Locate(part.EPK).ID
	undo := w.r.IntN(5) == 0
	after := map[string]*modelItem{} // nil: deleted
	wrote := false
	_, err := w.c.Update(part, func(tx *Tx) error {
		for range 1 + w.r.IntN(4) {
			id := "id" + strconv.Itoa(w.r.IntN(8))
			if w.r.IntN(4) == 0 {
				found, err := tx.Delete(id)
				if err != nil {
					return err
				}
				if found {
					after[id], wrote = nil, true
				}
				continue
			}
			item := &modelItem{pk: pk, id: id, n: w.r.IntN(1000), lsn: w.m.lsns[rng] + 1}
			text := fmt.Sprintf(`{"id":%q,"pk":%q,"n":%d}`, id, pk, item.n)
			if w.r.IntN(3) == 0 {
				ttl := 1 + w.r.IntN(6)
				item.dies = w.m.now.Add(time.Duration(ttl) * time.Second)
				text = fmt.Sprintf(`{"id":%q,"pk":%q,"n":%d,"ttl":%d}`, id, pk, item.n, ttl)
			}
			doc, err := document.Parse([]byte(text), []document.Path{{"pk"}})
			if err != nil {
				return err
			}
			w.created++
			item.created = w.created
			if earlier, known := after[id]; known && earlier != nil {
				item.created = earlier.created
			} else if old, live := w.m.live(pk + "/" + id); live && !known {
				item.created = old.created
			}
			if _, err := tx.Put(doc); err != nil {
				return err
			}
			after[id], wrote = item, true
		}
		if undo {
			return errAbort
		}
		return nil
	})
	if undo {
		if !errors.Is(err, errAbort) {
			w.t.Fatal(err)
		}
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if wrote {
		w.m.lsns[rng]++
	}
	for id, item := range after {
		if item == nil {
			delete(w.m.items, pk+"/"+id)
		} else {
			w.m.items[pk+"/"+id] = *item
		}
	}
}

type stored struct {
	ID  string `json:"id"`
	PK  string `json:"pk"`
	N   int    `json:"n"`
	LSN uint64 `json:"_lsn"`
}

func (w *world) check() {
	w.t.Helper()
	for _, r := range w.c.Topology().Ranges {
		if r.LSN() != w.m.lsns[r.ID] {
			w.t.Fatalf("range %s is at LSN %d, want %d", r.ID, r.LSN(), w.m.lsns[r.ID])
		}
	}
	var want []modelItem
	for key := range w.m.items {
		if item, live := w.m.live(key); live {
			want = append(want, item)
		}
	}
	w.checkReads()
	slices.SortFunc(want, func(a, b modelItem) int { return a.created - b.created })
	w.checkScan(want)
	w.checkFeeds(want)
}

func (w *world) checkReads() {
	for range 20 {
		pk, id := "pk"+strconv.Itoa(w.r.IntN(12)), "id"+strconv.Itoa(w.r.IntN(8))
		item, err := w.c.Get(nil, NewPartition(epk.Key{epk.String(pk)}, epk.V2), id, nil)
		want, live := w.m.live(pk + "/" + id)
		switch {
		case !live:
			if !errors.Is(err, ErrNotFound) {
				w.t.Fatalf("%s/%s: %v, want nothing", pk, id, err)
			}
		case err != nil || !bytes.Contains(item.Body, fmt.Appendf(nil, `"n":%d`, want.n)) || item.LSN != want.lsn:
			w.t.Fatalf("%s/%s: %s (%v), want %+v", pk, id, item.Body, err, want)
		}
	}
}

func (w *world) checkScan(want []modelItem) {
	var got []stored
	var last uint64
	skip := uint64(0) // half of the scans start after a document
	collect := func(number uint64, body []byte) bool {
		if number <= last {
			w.t.Fatalf("document %d after %d", number, last)
		}
		if last = number; len(got) == len(want)/2 {
			skip = number
		}
		got = append(got, decode(w.t, body))
		return true
	}
	if err := w.c.Scan(Scope{}, collect); err != nil {
		w.t.Fatal(err)
	}
	if len(got) != len(want) {
		w.t.Fatalf("a scan finds %d documents, want %d", len(got), len(want))
	}
	rest := len(got) - min(len(want)/2+1, len(got))
	got, last = got[:0:0], skip
	if err := w.c.Scan(Scope{After: skip}, collect); err != nil || len(want) > 0 && len(got) != rest {
		w.t.Fatalf("a scan after a document finds %d documents, want %d: %v", len(got), rest, err)
	}
	got, last = got[:0:0], 0
	if err := w.c.Scan(Scope{}, collect); err != nil {
		w.t.Fatal(err)
	}
	// The order is that of insertion within a logical partition.
	slices.SortStableFunc(got, func(a, b stored) int { return strings.Compare(a.PK, b.PK) })
	slices.SortStableFunc(want, func(a, b modelItem) int { return strings.Compare(a.pk, b.pk) })
	for i := range got {
		if got[i].ID != want[i].id || got[i].PK != want[i].pk || got[i].N != want[i].n {
			w.t.Fatalf("document %d of a scan is %+v, want %+v", i, got[i], want[i])
		}
	}
	id := "id" + strconv.Itoa(w.r.IntN(8))
	n := 0
	if err := w.c.Scan(Scope{Items: []ItemRef{{ID: id}}}, func(uint64, []byte) bool { n++; return true }); err != nil {
		w.t.Fatal(err)
	}
	for _, item := range want {
		if item.id == id {
			n--
		}
	}
	if n != 0 {
		w.t.Fatalf("a look-up of id %s finds %d too many", id, n)
	}
}

// checkFeeds reads every range from a random position, in pages.
func (w *world) checkFeeds(want []modelItem) {
	var most uint64
	for _, r := range w.c.Topology().Ranges {
		most = max(most, w.m.lsns[r.ID])
	}
	from := uint64(w.r.IntN(int(most) + 1))
	var got []stored
	for _, r := range w.c.Topology().Ranges {
		last := from
		for at := from; ; {
			page, err := w.c.Feed(nil, FeedQuery{Range: r.ID, After: at, MaxItems: 1 + w.r.IntN(5)})
			if err != nil {
				w.t.Fatal(err)
			}
			if page.Count == 0 {
				if end := max(at, w.m.lsns[r.ID]); page.LSN != end {
					w.t.Fatalf("the feed of range %s ends at %d, want %d", r.ID, page.LSN, end)
				}
				break
			}
			var docs []json.RawMessage
			if err := json.Unmarshal(append(append([]byte("["), page.Documents...), ']'), &docs); err != nil {
				w.t.Fatal(err)
			}
			for _, d := range docs {
				s := decode(w.t, d)
				if s.LSN <= at || s.LSN < last {
					w.t.Fatalf("LSN %d after %d in range %s", s.LSN, last, r.ID)
				}
				last = s.LSN
				got = append(got, s)
			}
			at = page.LSN
		}
	}
	n := 0
	for _, item := range want {
		if item.lsn <= from {
			continue
		}
		n++
		if !slices.Contains(got, stored{ID: item.id, PK: item.pk, N: item.n, LSN: item.lsn}) {
			w.t.Fatalf("the feed from %d lacks %+v", from, item)
		}
	}
	if n != len(got) {
		w.t.Fatalf("the feed from %d has %d changes, want %d", from, len(got), n)
	}
}

func decode(t *testing.T, body []byte) stored {
	t.Helper()
	var s stored
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return s
}
