package store

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/tests/testenv"
)

// After any sequence of splits and merges the ranges cover the key space without gap or
// overlap, list their ancestors, and read the segments of all of them.
func TestTopologyStaysComplete(t *testing.T) {
	r := testenv.Random(t)
	top := newTopology(epk.V2, 3)
	for range 200 {
		i := r.IntN(len(top.Ranges))
		var next *Topology
		var err error
		switch {
		case r.IntN(3) > 0 && len(top.Ranges) < 20:
			next, err = top.split(epk.V2, top.Ranges[i].ID, nil)
		case i+1 < len(top.Ranges):
			next, err = top.merge(top.Ranges[i].ID, top.Ranges[i+1].ID)
		default:
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		checkTopology(t, top, next)
		top = next
	}
}

func checkTopology(t *testing.T, before, after *Topology) {
	t.Helper()
	if len(after.Ranges[0].Min) != 0 || !bytes.Equal(after.Ranges[len(after.Ranges)-1].Max, []byte{0xFF}) {
		t.Fatal("the ranges do not reach both ends")
	}
	ids := map[string]bool{}
	for i := range after.Ranges {
		r := &after.Ranges[i]
		if ids[r.ID] {
			t.Fatalf("range id %s is there twice", r.ID)
		}
		ids[r.ID] = true
		if i > 0 && !bytes.Equal(after.Ranges[i-1].Max, r.Min) {
			t.Fatalf("gap before range %s", r.ID)
		}
		for j := range before.Ranges {
			old := &before.Ranges[j]
			if _, overlaps := old.Bounds().Intersect(r.Bounds()); !overlaps || old.ID == r.ID {
				continue
			}
			for _, segment := range old.segments() {
				if !contains(r.segments(), segment) {
					t.Fatalf("range %s does not read segment %d of its ancestor %s", r.ID, segment, old.ID)
				}
			}
			if !contains(r.Parents, old.ID) {
				t.Fatalf("range %s does not name its ancestor %s", r.ID, old.ID)
			}
		}
	}
	for i := range 50 {
		key := epk.V2.Append(nil, epk.Key{epk.String(strconv.Itoa(i))})
		if at := after.Locate(key); !at.Bounds().Contains(key) {
			t.Fatalf("key %s is not in range %s", epk.Format(key), at.ID)
		}
	}
}

func contains[T comparable](list []T, x T) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

func TestTopologyRefusesWhatCannotBe(t *testing.T) {
	top := newTopology(epk.V2, 2)
	if _, err := top.split(epk.V2, "9", nil); !errors.Is(err, ErrRangeGone) {
		t.Errorf("split of no range: %v", err)
	}
	for _, at := range [][]byte{{}, {0xFF}, {0x3F}} {
		if _, err := top.split(epk.V2, "0", at); !errors.Is(err, ErrInvalid) {
			t.Errorf("split of range 0 at %x: %v", at, err)
		}
	}
	if _, err := top.merge("1", "0"); !errors.Is(err, ErrInvalid) {
		t.Errorf("merge in the wrong order: %v", err)
	}
}
