package cosmosfeed_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// ranges returns the physical ranges of the service.
func (a *account) ranges(container string) (ids []string, bounds []changefeed.FeedRange) {
	a.t.Helper()
	physical, err := a.srv.PartitionKeyRanges("db", container)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, r := range physical {
		ids = append(ids, r.ID)
		bounds = append(bounds, changefeed.FeedRange{Min: r.MinInclusive, Max: r.MaxExclusive})
	}
	return ids, bounds
}

// merge joins the first two physical ranges. split divides the first one at a key.
func (a *account) merge(container string) {
	a.t.Helper()
	ids, _ := a.ranges(container)
	if err := a.srv.Merge("db", container, ids[0], ids[1]); err != nil {
		a.t.Fatal(err)
	}
}

func (a *account) split(container, at string) {
	a.t.Helper()
	ids, _ := a.ranges(container)
	if err := a.srv.SplitAt("db", container, ids[0], at); err != nil {
		a.t.Fatal(err)
	}
}

// limited counts feed reads that carried bounds.
func (w *wire) limited() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.calls {
		if h.Get("x-ms-start-epk")+h.Get("x-ms-end-epk")+h.Get("x-ms-read-key-type") != "" {
			n++
		}
	}
	return n
}

// Nothing is lost as long as leases and physical ranges agree. The doubt is reported once,
// and then a lease that needs the hash is refused.
func TestWrongHashLosesNothing(t *testing.T) {
	for _, withPolicy := range []bool{true, false} {
		t.Run(fmt.Sprintf("policy=%t", withPolicy), func(t *testing.T) {
			a := newAccount(t, 4, withPolicy)
			a.put(200, 40)
			w := a.watch()
			feed := a.feed("data")
			feed.BreakHash()
			_, leases := a.ranges("data")
			seen := map[string]int{}
			var doubts []error
			at := make([]string, len(leases))
			for i, r := range leases {
				for caughtUp := false; !caughtUp; {
					page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: r, Continuation: at[i], MaxItems: 7})
					if err != nil {
						t.Fatal(err)
					}
					if page.Doubt != nil {
						doubts = append(doubts, page.Doubt)
					}
					for _, item := range page.Items {
						seen[string(item.Raw)]++
					}
					at[i], caughtUp = page.Continuation, page.CaughtUp
				}
			}
			if len(seen) != 200 {
				t.Errorf("%d documents, want 200", len(seen))
			}
			if len(doubts) != 1 || !strings.Contains(doubts[0].Error(), "lies outside") {
				t.Errorf("reported %d times: %v", len(doubts), doubts)
			}
			if n := w.limited(); n != 0 {
				t.Errorf("%d reads of whole ranges carried bounds", n)
			}
			a.merge("data")
			for i, r := range leases {
				_, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: r, Continuation: at[i]})
				if narrow := i < 2; narrow != errors.Is(err, changefeed.ErrPermanent) || (narrow && !strings.Contains(err.Error(), "keys computed here are wrong")) {
					t.Errorf("range %s after the merge: %v", r, err)
				}
			}
		})
	}
}

// A lease that never reads a whole range detects that a key cannot be where it was read.
func TestWrongHashIsNoticedByNarrowLeases(t *testing.T) {
	a := newAccount(t, 4, true)
	a.put(200, 40)
	_, leases := a.ranges("data")
	a.merge("data")
	feed := a.feed("data")
	feed.BreakHash()
	_, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: leases[0]})
	if !errors.Is(err, changefeed.ErrPermanent) || !strings.Contains(err.Error(), "lies outside") {
		t.Errorf("read with a wrong hash: %v", err)
	}
}

// keyless writes documents without a partition key, which the SDK cannot do.
type keyless struct{}

func (keyless) Do(req *policy.Request) (*http.Response, error) {
	const header = "x-ms-documentdb-partitionkey"
	if req.Raw().Method == http.MethodPost && req.Raw().Header.Get("x-ms-documentdb-is-upsert") != "" && req.Raw().Header.Get(header) == "" {
		req.Raw().Header.Set(header, "[{}]")
	}
	return req.Next()
}

// Keys that are not hashed here are read by leases of whole ranges, and refused by narrow
// leases.
func TestKeysWithoutAHash(t *testing.T) {
	a := newAccountWith(t, cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 2}), keyless{})
	a.createContainer("tree", "/tenant", "/user")
	db, err := a.client.NewDatabase("db")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "old", PartitionKey: []string{"/pk"}, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	_, err = db.CreateContainer(t.Context(), azcosmos.ContainerProperties{
		ID: "v1", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 1},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for container, want := range map[string]string{"tree": "hierarchical", "v1": "hash version 1", "old": "no partition key"} {
		t.Run(container, func(t *testing.T) {
			c, err := a.client.NewContainer("db", container)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 60 {
				key := azcosmos.NewPartitionKeyString(fmt.Sprint(i % 9))
				body := fmt.Appendf(nil, `{"id":"%d","pk":"%d"}`, i, i%9)
				switch container {
				case "tree":
					key = key.AppendString(fmt.Sprint(i))
					body = fmt.Appendf(nil, `{"id":"%d","tenant":"%d","user":"%d"}`, i, i%9, i)
				case "old":
					key, body = azcosmos.NewPartitionKey(), fmt.Appendf(nil, `{"id":"%d"}`, i)
				}
				if _, err := c.UpsertItem(t.Context(), key, body, nil); err != nil {
					t.Fatal(err)
				}
			}
			feed := a.feed(container)
			_, leases := a.ranges(container)
			n := 0
			for _, r := range leases {
				ids, _ := drain(t, feed, r, "")
				n += len(ids)
			}
			if n != 60 {
				t.Errorf("%d documents from %d whole ranges, want 60", n, len(leases))
			}
			part := leases[0]
			part.Max = "1800"
			if container == "v1" {
				part.Max = "05C1CFFFFFFFF8"
			}
			_, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: part})
			if !errors.Is(err, changefeed.ErrPermanent) || !strings.Contains(err.Error(), want) {
				t.Errorf("a part of a range: %v", err)
			}
		})
	}
}

// The gateway of the service may refuse bounds beside a range id. One refusal is enough for all
// feeds of a client.
func TestRefusedBoundsAreSentOnlyOnce(t *testing.T) {
	a := newAccount(t, 2, true)
	a.put(100, 40)
	_, leases := a.ranges("data")
	a.merge("data")
	w := a.watch()
	a.srv.Control(cosmosemu.OpReadChangeFeed, func(c *cosmosemu.Call) *cosmosemu.Fault {
		if c.Header.Get("x-ms-end-epk") == "" {
			return nil
		}
		return &cosmosemu.Fault{Status: http.StatusBadRequest, Message: "One of the input values is invalid."}
	})
	seen := map[string]int{}
	for range 2 { // feeds of one client
		feed := a.feed("data")
		for _, r := range leases {
			ids, _ := drain(t, feed, r, "")
			for _, id := range ids {
				seen[id]++
			}
		}
	}
	for id, n := range seen {
		if n != 2 {
			t.Errorf("document %s was read %d times by two feeds", id, n)
		}
	}
	if len(seen) != 100 || w.limited() != 1 {
		t.Errorf("%d documents and %d reads with bounds, want 100 and 1", len(seen), w.limited())
	}
}

// A read that is also refused without bounds says nothing about them.
func TestBoundsAreSentAgainAfterAnotherBadRequest(t *testing.T) {
	a := newAccount(t, 2, true)
	a.put(10, 10)
	_, leases := a.ranges("data")
	a.merge("data")
	feed := a.feed("data")
	_, at := drain(t, feed, leases[1], "")
	remove := a.srv.Control(cosmosemu.OpReadChangeFeed, cosmosemu.Always(cosmosemu.Fault{Status: http.StatusBadRequest}))
	if _, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: leases[1], Continuation: at}); err == nil {
		t.Error("a refused read succeeds")
	}
	remove()
	w := a.watch()
	drain(t, feed, leases[1], at)
	if w.limited() == 0 {
		t.Error("the bounds are not sent any more")
	}
}

// Two hosts have caches of their own, and one of them notices every change late.
func TestStaleRangesDeliverDocumentsOnce(t *testing.T) {
	a := newAccount(t, 2, true)
	late := newAccountAt(t, a, "late")
	feeds := []*cosmosfeed.Feed{a.feed("data"), late.feed("data")}
	w := a.watch()
	_, leases := a.ranges("data")
	at := make([]string, len(leases))
	round := func(what string, limited bool, readers ...*cosmosfeed.Feed) {
		t.Helper()
		a.put(100, 40)
		seen := map[string]int{}
		for i, r := range leases {
			var ids []string
			ids, at[i] = drain(t, readers[i], r, at[i])
			for _, id := range ids {
				seen[id]++
			}
			if (w.last(t).Get("x-ms-end-epk") != "") != limited { // of the range's last read
				t.Errorf("%s: a read of %s carries bounds: %t", what, r, !limited)
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%s: document %s has %d owners", what, id, n)
			}
		}
		if len(seen) != 100 {
			t.Errorf("%s: %d documents, want 100", what, len(seen))
		}
	}
	round("two ranges", false, feeds[0], feeds[0])
	round("known to both hosts", false, feeds[1], feeds[1])
	a.merge("data")
	round("merged", true, feeds[0], feeds[1])
	a.split("data", leases[0].Max)
	round("split as before", false, feeds[1], feeds[0])
	a.merge("data")
	a.split("data", leases[0].Max)
	round("merged and split unseen", false, feeds[0], feeds[1])
	a.split("data", "0C")
	var split *changefeed.SplitError
	for i, f := range feeds {
		_, err := f.Read(t.Context(), changefeed.ReadRequest{Range: leases[0], Continuation: at[0]})
		if !errors.As(err, &split) {
			t.Fatalf("host %d reads across a split: %v", i, err)
		}
	}
	leases, at = []changefeed.FeedRange{split.Children[0], split.Children[1], leases[1]}, []string{at[0], at[0], at[1]}
	round("children, one known to a late host only", false, feeds[0], feeds[1], feeds[0])
}

// after calls a function once, between the reply to a feed read and the SDK.
type after struct{ do atomic.Pointer[func()] }

func (p *after) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if req.Raw().Header.Get("A-IM") != "" && req.Raw().Header.Get("x-ms-documentdb-partitionkeyrangeid") != "" {
		if do := p.do.Swap(nil); do != nil {
			(*do)()
		}
	}
	return resp, err
}

// The reply is from the merged range, but the list made after it shows it split again.
func TestBoundsBelongToTheRangeThatReplied(t *testing.T) {
	hook := &after{}
	a := newAccountWith(t, cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 2}), hook)
	a.put(100, 40)
	_, leases := a.ranges("data")
	a.merge("data")
	feed, other := a.feed("data"), a.feed("data")
	meanwhile := func() {
		a.split("data", leases[0].Max)
		if _, err := other.Read(t.Context(), changefeed.ReadRequest{Range: leases[0]}); err != nil { // refreshes the list
			t.Error(err)
		}
	}
	hook.do.Store(&meanwhile)
	seen := 0
	for _, r := range leases {
		ids, _ := drain(t, feed, r, "")
		seen += len(ids)
	}
	if seen != 100 || hook.do.Load() != nil {
		t.Errorf("%d documents for two owners, want 100", seen)
	}
}

// A processor on a feed with a wrong hash delivers all documents and reports the doubt.
// After a merge its leases are stuck, and the next owner reads the rest.
func TestWrongHashStopsMergedRanges(t *testing.T) {
	a := newAccount(t, 2, true)
	a.put(100, 40)
	got := &recorder{}
	var doubts, stuck atomic.Int32
	start := func(feed *cosmosfeed.Feed) func() {
		p, err := changefeed.New(feed, a.leases("leases"), got, &changefeed.Options{
			Host: "a", PollMin: 10 * time.Millisecond, Acquire: 100 * time.Millisecond, AcquireFast: 20 * time.Millisecond,
			RetryMin: 10 * time.Millisecond, RetryMax: 50 * time.Millisecond, StuckAfter: 100 * time.Millisecond,
			Observer: &changefeed.Observer{
				LeaseError: func(e changefeed.LeaseError) {
					if e.Op == "check the feed" && strings.Contains(e.Err.Error(), "lies outside") {
						doubts.Add(1)
					}
				},
				RangeStuck: func(changefeed.RangeStuck) { stuck.Add(1) },
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return run(t, p)
	}
	broken := a.feed("data")
	broken.BreakHash()
	stop := start(broken)
	got.wait(t, 100)
	if doubts.Load() != 1 {
		t.Errorf("reported %d times, want once", doubts.Load())
	}
	a.merge("data")
	a.put(100, 40)
	for deadline := time.Now().Add(time.Minute); stuck.Load() < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d ranges are reported as stuck, want 2", stuck.Load())
		}
	}
	operator := changefeed.NewOperator(broken, a.leases("leases"), nil)
	shown := func() (n int) {
		leases, err := operator.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			if l.Health == changefeed.Unread && strings.Contains(l.Error, "cannot be distinguished") {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); shown() < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d leases show the error, want 2", shown())
		}
	}
	if n := got.count(); n != 100 {
		t.Errorf("%d deliveries, want only those before the merge", n)
	}
	stop()
	start(a.feed("data"))
	got.wait(t, 200)
	if n := got.count(); n != 200 {
		t.Errorf("%d deliveries, want 200", n)
	}
}
