// Package leasetest is the conformance suite of changefeed.LeaseStore. It tests the
// properties that the processor relies on, and no others.
//
// It imports testing and is meant for test files only.
package leasetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"feedbox/changefeed"
)

// Run tests a store. open returns the store under test. Each test uses its own ids, so one
// store may serve all of them.
func Run(t *testing.T, open func(t *testing.T) changefeed.LeaseStore) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s *fixture){
		"a created record is read back":                  created,
		"create refuses an id that exists":               exists,
		"read of a missing record":                       missing,
		"replace with the current ETag":                  replaced,
		"an old ETag changes nothing":                    stale,
		"replace and delete of a missing record":         gone,
		"replace without an ETag is refused":             blind,
		"every write gives a new ETag":                   fresh,
		"an id used again does not honour an old ETag":   reborn,
		"list finds by prefix, exactly":                  listed,
		"list returns the ETags a replace needs":         listedETags,
		"unknown members survive":                        members,
		"one of many creators wins":                      creators,
		"one of many replacers with one ETag wins":       replacers,
		"a large record is stored whole":                 large,
		"a cancelled context ends a call with its error": cancelled,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, &fixture{LeaseStore: open(t), prefix: "leasetest-" + strings.ReplaceAll(name, " ", "-")})
		})
	}
}

type fixture struct {
	changefeed.LeaseStore
	prefix string
}

// id makes an id like the processor's, dots included.
func (f *fixture) id(suffix string) string {
	return f.prefix + "host.example_AAAA==_BBBB-C=.." + suffix
}

func (f *fixture) new(suffix string, n int) changefeed.Record {
	id := f.id(suffix)
	return changefeed.Record{ID: id, Body: json.RawMessage(fmt.Sprintf(`{"id":%q,"n":%d,"Owner":null,"properties":{"a":"b"}}`, id, n))}
}

func (f *fixture) create(t *testing.T, r changefeed.Record) string {
	t.Helper()
	etag, err := f.Create(t.Context(), r)
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	if etag == "" {
		t.Fatal("Create: empty ETag")
	}
	return etag
}

// replace stores a record whose ETag is current, and returns the new ETag.
func (f *fixture) replace(t *testing.T, r changefeed.Record) string {
	t.Helper()
	etag, err := f.Replace(t.Context(), r)
	if err != nil || etag == "" || etag == r.ETag {
		t.Fatalf("Replace: ETag %q after %q, error %v", etag, r.ETag, err)
	}
	return etag
}

func (f *fixture) delete(t *testing.T, r changefeed.Record) {
	t.Helper()
	if err := f.Delete(t.Context(), r.ID, r.ETag); err != nil {
		t.Fatalf("Delete: %v", err)
	}
}

// refuses fails unless Replace and Delete of the record return an error of the kind.
func (f *fixture) refuses(t *testing.T, r changefeed.Record, kind error) {
	t.Helper()
	_, err := f.Replace(t.Context(), r)
	want(t, "Replace", err, kind)
	want(t, "Delete", f.Delete(t.Context(), r.ID, r.ETag), kind)
}

func (f *fixture) want(t *testing.T, id string, n int, etag string) {
	t.Helper()
	got, err := f.Read(t.Context(), id)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	if got.ID != id || got.ETag != etag || number(t, got) != n {
		t.Fatalf("Read: id %q, ETag %s, n %d; want %q, %s, %d", got.ID, got.ETag, number(t, got), id, etag, n)
	}
}

func number(t *testing.T, r changefeed.Record) int {
	t.Helper()
	var doc struct{ N int }
	if err := json.Unmarshal(r.Body, &doc); err != nil {
		t.Fatalf("body %s: %v", r.Body, err)
	}
	return doc.N
}

func want(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%s: error %v, want %v", what, err, kind)
	}
}

func created(t *testing.T, f *fixture) {
	etag := f.create(t, f.new("-FF", 1))
	f.want(t, f.id("-FF"), 1, etag)
}

func exists(t *testing.T, f *fixture) {
	etag := f.create(t, f.new("a", 1))
	_, err := f.Create(t.Context(), f.new("a", 2))
	want(t, "Create", err, changefeed.ErrExists)
	f.want(t, f.id("a"), 1, etag)
}

func missing(t *testing.T, f *fixture) {
	_, err := f.Read(t.Context(), f.id("none"))
	want(t, "Read", err, changefeed.ErrNotFound)
}

func replaced(t *testing.T, f *fixture) {
	next := f.new("a", 2)
	next.ETag = f.create(t, f.new("a", 1))
	etag := f.replace(t, next)
	f.want(t, f.id("a"), 2, etag)
}

func stale(t *testing.T, f *fixture) {
	second, third := f.new("a", 2), f.new("a", 3)
	second.ETag = f.create(t, f.new("a", 1))
	third.ETag = second.ETag
	etag := f.replace(t, second)
	f.refuses(t, third, changefeed.ErrETagMismatch)
	f.want(t, f.id("a"), 2, etag)
}

func gone(t *testing.T, f *fixture) {
	r := f.new("a", 2)
	r.ETag = f.create(t, f.new("a", 1))
	f.delete(t, r)
	f.refuses(t, r, changefeed.ErrNotFound)
	_, err := f.Read(t.Context(), r.ID)
	want(t, "Read", err, changefeed.ErrNotFound)
}

func blind(t *testing.T, f *fixture) {
	etag := f.create(t, f.new("a", 1))
	f.refuses(t, f.new("a", 2), changefeed.ErrETagMismatch)
	f.want(t, f.id("a"), 1, etag)
}

func fresh(t *testing.T, f *fixture) {
	r := f.new("a", 1)
	r.ETag = f.create(t, r)
	seen := map[string]bool{r.ETag: true}
	for range 5 {
		r.ETag = f.replace(t, r) // the same bytes each time
		if seen[r.ETag] {
			t.Fatalf("ETag %s was used before", r.ETag)
		}
		seen[r.ETag] = true
	}
}

func reborn(t *testing.T, f *fixture) {
	r := f.new("a", 1)
	r.ETag = f.create(t, r)
	f.delete(t, r)
	etag := f.create(t, f.new("a", 2))
	f.refuses(t, r, changefeed.ErrETagMismatch)
	f.want(t, r.ID, 2, etag)
}

func listed(t *testing.T, f *fixture) {
	for _, suffix := range []string{"0-1", "1-2", "2_%", "2x%"} {
		f.create(t, f.new(suffix, 1))
	}
	f.create(t, changefeed.Record{ID: f.prefix + "2other", Body: json.RawMessage(fmt.Sprintf(`{"id":%q}`, f.prefix+"2other"))})
	for prefix, n := range map[string]int{f.id(""): 4, f.id("2_"): 1, f.id("3"): 0, f.prefix: 5} {
		found, err := f.List(t.Context(), prefix)
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		if len(found) != n {
			t.Errorf("List %q found %d, want %d", prefix, len(found), n)
		}
		for _, r := range found {
			if !strings.HasPrefix(r.ID, prefix) {
				t.Errorf("List %q found %q", prefix, r.ID)
			}
		}
	}
}

func listedETags(t *testing.T, f *fixture) {
	var ids []string
	for i := range 120 { // more than a page
		r := f.new(fmt.Sprintf("%03d", i), 1)
		f.create(t, r)
		ids = append(ids, r.ID)
	}
	found, err := f.List(t.Context(), f.id(""))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range found {
		got = append(got, r.ID)
		next := changefeed.Record{ID: r.ID, ETag: r.ETag, Body: f.new(r.ID[len(f.id("")):], 2).Body}
		if _, err := f.Replace(t.Context(), next); err != nil {
			t.Fatalf("Replace with a listed ETag: %v", err)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, ids) {
		t.Fatalf("List found %d records, want %d", len(got), len(ids))
	}
}

func members(t *testing.T, f *fixture) {
	r := changefeed.Record{ID: f.id("a"), Body: json.RawMessage(fmt.Sprintf(`{"id":%q,"x":{"y":[1,"é",null]},"ContinuationToken":"\"12\""}`, f.id("a")))}
	f.create(t, r)
	got, err := f.Read(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		X                 struct{ Y []any }
		ContinuationToken string
	}
	if err := json.Unmarshal(got.Body, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.X.Y) != 3 || doc.X.Y[1] != "é" || doc.ContinuationToken != `"12"` {
		t.Fatalf("stored as %s", got.Body)
	}
}

func creators(t *testing.T, f *fixture) {
	won := race(16, func(i int) bool {
		_, err := f.Create(t.Context(), f.new("a", i))
		if err != nil && !errors.Is(err, changefeed.ErrExists) {
			t.Errorf("Create: %v", err)
		}
		return err == nil
	})
	if won != 1 {
		t.Fatalf("%d of 16 creators won", won)
	}
}

func replacers(t *testing.T, f *fixture) {
	etag := f.create(t, f.new("a", 0))
	for round := range 5 {
		won := race(16, func(i int) bool {
			r := f.new("a", round*100+i)
			r.ETag = etag
			_, err := f.Replace(t.Context(), r)
			if err != nil && !errors.Is(err, changefeed.ErrETagMismatch) {
				t.Errorf("Replace: %v", err)
			}
			return err == nil
		})
		if won != 1 {
			t.Fatalf("round %d: %d of 16 replacers won", round, won)
		}
		got, err := f.Read(t.Context(), f.id("a"))
		if err != nil {
			t.Fatal(err)
		}
		etag = got.ETag
	}
}

// race makes n calls at once and counts those that return true.
func race(n int, call func(i int) bool) (won int) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if call(i) {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return won
}

func large(t *testing.T, f *fixture) {
	text := strings.Repeat("0123456789abcdef", 16<<10) // 256 KiB: the plan of some thousand leases
	r := changefeed.Record{ID: f.id("a"), Body: json.RawMessage(fmt.Sprintf(`{"id":%q,"n":7,"text":%q}`, f.id("a"), text))}
	etag := f.create(t, r)
	f.want(t, r.ID, 7, etag)
}

func cancelled(t *testing.T, f *fixture) {
	f.create(t, f.new("a", 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.List(ctx, f.id("")); !errors.Is(err, context.Canceled) {
		t.Errorf("List: error %v, want %v", err, context.Canceled)
	}
	if _, err := f.Read(ctx, f.id("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("Read: error %v, want %v", err, context.Canceled)
	}
}
