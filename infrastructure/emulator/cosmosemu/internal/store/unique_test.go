package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/tests/testenv"
)

// After random writes, deletions, expiry and sweeps, a write is refused exactly if a live
// document of its partition has the same value.
func TestUniqueKeysFollowTheirModel(t *testing.T) {
	r := testenv.Random(t)
	now := time.Unix(1_800_000_000, 0)
	s, err := Open(Options{Now: func() time.Time { return now }, Sweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := s.CreateDatabase("db")
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.CreateContainer(db, Definition{
		ID: "c", Paths: []document.Path{{"pk"}}, KeyVersion: 2, DefaultTTL: -1, Unique: []UniqueKey{{{"v"}}},
	}, 2)
	if err != nil {
		t.Fatal(err)
	}
	type item struct {
		v    int
		dies time.Time
	}
	model := make(map[string]item) // by partition and id
	live := func(pk, id string) (item, bool) {
		i, ok := model[pk+id]
		return i, ok && now.Before(i.dies)
	}
	for step := range 3000 {
		pk, id := string(rune('p'+r.IntN(2))), string(rune('a'+r.IntN(6)))
		switch r.IntN(20) {
		case 0:
			now = now.Add(time.Second)
			continue
		case 1:
			if _, err := c.sweep(position{}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		v, ttl, remove := r.IntN(8), 1+r.IntN(5), r.IntN(5) == 0
		_, err := c.Update(NewPartition(epk.Key{epk.String(pk)}, epk.V2), func(tx *Tx) error {
			if remove {
				_, err := tx.Delete(id)
				return err
			}
			doc, err := document.Parse(fmt.Appendf(nil, `{"id":%q,"pk":%q,"v":%d,"ttl":%d}`, id, pk, v, ttl), nil)
			if err == nil {
				_, err = tx.Put(doc)
			}
			return err
		})
		taken := false
		for other := 'a'; other < 'g'; other++ {
			holder, is := live(pk, string(other))
			taken = taken || is && !remove && string(other) != id && holder.v == v
		}
		if errors.Is(err, ErrNotUnique) != taken || err != nil && !taken {
			t.Fatalf("step %d: %s/%s with %d, taken %v: %v", step, pk, id, v, taken, err)
		}
		switch {
		case remove:
			delete(model, pk+id)
		case !taken:
			model[pk+id] = item{v, now.Add(time.Duration(ttl) * time.Second)}
		}
	}
	now = now.Add(time.Hour)
	if _, err := c.sweep(position{}); err != nil {
		t.Fatal(err)
	}
	from := c.space.prefix(nil, kindUnique)
	entries := 0
	v := s.view()
	defer v.release()
	it, err := v.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for it.SeekGE(from); it.Valid() && string(it.Key()) < string(after(from)); it.Next() {
		entries++
	}
	if err := it.Close(); err != nil || entries > 0 {
		t.Errorf("%d entries left of an empty container: %v", entries, err)
	}
}
