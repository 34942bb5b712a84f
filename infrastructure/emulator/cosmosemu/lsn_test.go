package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
)

// feedFrom reads one page of a range's feed as a lag estimator does: the last LSN of the range,
// and the first changes after a position.
func feedFrom(t *testing.T, srv *cosmosemu.Server, rng, position, items string) (last uint64, changes []change, etag string) {
	t.Helper()
	r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", map[string]string{
		"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": rng, "If-None-Match": position, "x-ms-max-item-count": items,
	})
	_, lsn, _ := strings.Cut(r.Header.Get("x-ms-session-token"), "#")
	last, err := strconv.ParseUint(lsn, 10, 64)
	if err != nil {
		t.Fatalf("range %s: %d, session token %q", rng, r.StatusCode, r.Header.Get("x-ms-session-token"))
	}
	var page struct{ Documents []change }
	if r.StatusCode == http.StatusOK {
		if err := json.Unmarshal([]byte(r.Body), &page); err != nil {
			t.Fatal(err)
		}
	}
	return last, page.Documents, r.Header.Get("etag")
}

// lag computes the estimate of the .NET SDK: the distance of the first unread change from the end
// of its range.
func lag(t *testing.T, srv *cosmosemu.Server, positions map[string]string) (total int64) {
	t.Helper()
	for _, r := range live(t, srv) {
		last, open, _ := feedFrom(t, srv, r.ID, positions[r.ID], "1")
		if len(open) > 0 {
			total += int64(last) - open[0].LSN + 1
		}
	}
	return total
}

func TestLagOverManyRanges(t *testing.T) {
	srv, c := start(t, &cosmosemu.Options{Partitions: 5})
	for i := range 100 {
		create(t, c, fmt.Sprint("old", i), fmt.Sprint("pk", i))
	}
	positions := map[string]string{}
	for _, r := range live(t, srv) {
		_, changes, etag := feedFrom(t, srv, r.ID, "", "-1")
		if len(changes) == 0 {
			t.Fatalf("no change in range %s", r.ID)
		}
		positions[r.ID] = etag
	}
	if got := lag(t, srv, positions); got != 0 {
		t.Errorf("a lag of %d where all is read", got)
	}
	for i := range 300 {
		create(t, c, fmt.Sprint("new", i), fmt.Sprint("pk", i))
	}
	if got := lag(t, srv, positions); got != 300 {
		t.Errorf("a lag of %d where 300 changes are open", got)
	}
}

// A child continues at its parent's LSN, so the estimate stays correct over a split.
func TestLSNsContinueAfterSplit(t *testing.T) {
	srv, c := start(t, nil)
	for i := range 10 {
		create(t, c, fmt.Sprint(i), fmt.Sprint("pk", i))
	}
	_, _, etag := feedFrom(t, srv, "0", "", "-1")
	if err := srv.Split("db", "c", "0"); err != nil {
		t.Fatal(err)
	}
	for _, r := range live(t, srv) {
		if last, open, _ := feedFrom(t, srv, r.ID, etag, "-1"); last != 10 || len(open) != 0 {
			t.Errorf("range %s is at LSN %d after %s: %v", r.ID, last, etag, open)
		}
	}
	for i := range 20 {
		create(t, c, fmt.Sprint("more", i), fmt.Sprint("pk", i))
	}
	positions := map[string]string{}
	for _, r := range live(t, srv) {
		positions[r.ID] = etag
	}
	if got := lag(t, srv, positions); got != 20 {
		t.Errorf("a lag of %d after the split, want 20", got)
	}
}

// The merged range continues at the higher LSN of its parents. A reader that resumes at the lower
// of both positions misses nothing.
func TestLSNsContinueAfterMerge(t *testing.T) {
	srv, c := start(t, &cosmosemu.Options{Partitions: 2})
	for i := range 40 {
		create(t, c, fmt.Sprint(i), fmt.Sprint("pk", i))
	}
	low, lowest := uint64(1<<62), ""
	var high uint64
	for _, r := range live(t, srv) {
		last, _, etag := feedFrom(t, srv, r.ID, "", "-1")
		if last < low {
			low, lowest = last, etag
		}
		high = max(high, last)
	}
	for i := range 40 { // unread when the ranges are merged
		create(t, c, fmt.Sprint("open", i), fmt.Sprint("pk", i))
	}
	ranges := live(t, srv)
	high = max(ranges[0].LSN, ranges[1].LSN)
	if err := srv.Merge("db", "c", ranges[0].ID, ranges[1].ID); err != nil {
		t.Fatal(err)
	}
	merged := live(t, srv)[0]
	if merged.LSN != high {
		t.Errorf("the merged range is at LSN %d, its parents at %d and %d", merged.LSN, ranges[0].LSN, ranges[1].LSN)
	}
	create(t, c, "behind", "pk1")
	_, changes, _ := feedFrom(t, srv, merged.ID, lowest, "-1")
	seen := map[string]int64{}
	last := int64(0)
	for _, ch := range changes {
		if ch.LSN < last {
			t.Errorf("LSN %d after %d", ch.LSN, last)
		}
		seen[ch.ID], last = ch.LSN, ch.LSN
	}
	for i := range 40 {
		if seen[fmt.Sprint("open", i)] == 0 {
			t.Errorf("the change open%d is missed", i)
		}
	}
	if seen["behind"] != int64(high)+1 {
		t.Errorf("the first write after the merge has LSN %d, want %d", seen["behind"], high+1)
	}
}

// A session token applies to one range: writes to another range do not satisfy it.
func TestSessionTokenAppliesToItsRangeOnly(t *testing.T) {
	srv, c := start(t, &cosmosemu.Options{Partitions: 2})
	tokens := map[string]uint64{}
	for i := range 20 {
		w, err := c.UpsertItem(t.Context(), key(fmt.Sprint("pk", i)), doc(fmt.Sprint(i), fmt.Sprint("pk", i)), nil)
		if err != nil {
			t.Fatal(err)
		}
		id, lsn, _ := strings.Cut(*w.SessionToken, ":-1#")
		n, err := strconv.ParseUint(lsn, 10, 64)
		if err != nil || n != tokens[id]+1 {
			t.Errorf("token %s after LSN %d of the range", *w.SessionToken, tokens[id])
		}
		tokens[id] = n
	}
	query := func(token string) int {
		return send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"query":"SELECT * FROM c"}`, map[string]string{
			"x-ms-documentdb-query": "True", "x-ms-documentdb-query-enablecrosspartition": "True", "x-ms-session-token": token,
		}).StatusCode
	}
	known := fmt.Sprintf("0:-1#%d,1:-1#%d", tokens["0"], tokens["1"])
	if got := query(known); got != http.StatusOK {
		t.Errorf("a query with %s: %d", known, got)
	}
	for _, id := range []string{"0", "1"} {
		ahead := fmt.Sprintf("%s:-1#%d", id, tokens[id]+1)
		if got := query(ahead); got != http.StatusNotFound {
			t.Errorf("a query with %s: %d", ahead, got)
		}
	}
}

// A read of a merged range is never older than the merge, because the changes of its parents have
// no common order before. Otherwise a page could pass a change of one parent that it does not have.
func TestStaleReadIsNotOlderThanTheMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := start(t, &cosmosemu.Options{Network: pipenet.New(), Partitions: 2, StaleReads: 5 * time.Second, Seed: 1})
		keys := map[string]string{} // a key of each range
		for i := 0; len(keys) < 2; i++ {
			create(t, c, fmt.Sprint(i), fmt.Sprint("pk", i))
			for _, r := range live(t, srv) {
				if _, changes, _ := feedFrom(t, srv, r.ID, "", "1"); len(changes) > 0 && keys[r.ID] == "" {
					keys[r.ID] = fmt.Sprint("pk", i)
				}
			}
			time.Sleep(10 * time.Second)
		}
		ranges := live(t, srv)
		for range 20 {
			create(t, c, fmt.Sprint("early", time.Now().UnixNano()), keys[ranges[0].ID])
			time.Sleep(time.Second)
		}
		create(t, c, "late", keys[ranges[1].ID])
		if err := srv.Merge("db", "c", ranges[0].ID, ranges[1].ID); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			if _, changes, etag := feedFrom(t, srv, live(t, srv)[0].ID, "", "-1"); !slices.ContainsFunc(changes, func(ch change) bool { return ch.ID == "late" }) {
				t.Fatalf("the page up to %s lacks the last change before the merge", etag)
			}
		}
	})
}
