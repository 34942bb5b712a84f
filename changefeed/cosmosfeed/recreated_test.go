package cosmosfeed_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// recreate deletes the data container and creates it again with n documents.
func (a *account) recreate(n int) {
	a.t.Helper()
	if _, err := a.data.Delete(context.Background(), nil); err != nil {
		a.t.Fatal(err)
	}
	a.createContainer("data", "/pk")
	a.put(n, 5)
}

// within waits for a condition, for at most a minute.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// The process keeps running. Its position may be below or above the end of the new container.
func TestProcessorContinuesInAContainerCreatedAgain(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{5, 80} {
		a := newAccount(t, 1, true)
		var got atomic.Int64
		count := changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			got.Add(int64(len(b.Items)))
			return nil
		})
		p, err := changefeed.New(a.feed("data"), a.leases("leases"), count, &changefeed.Options{
			Processor: "p", Host: "h", PollMin: 20 * time.Millisecond, PollMax: 200 * time.Millisecond, Acquire: 500 * time.Millisecond, Expiry: 8 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		a.put(50, 5)
		within(t, "delivered", func() bool { return got.Load() == 50 })
		a.recreate(int(n))
		within(t, "the new container is delivered", func() bool { return got.Load() >= 50+n })
		time.Sleep(time.Second)
		if got.Load() != 50+n {
			t.Errorf("%d deliveries, want 50 and %d", got.Load(), n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The document that showed wrong keys was one of the deleted container.
func TestDoubtEndsWithItsContainer(t *testing.T) {
	a := newAccount(t, 4, true)
	a.put(40, 20)
	feed := a.feed("data")
	feed.BreakHash()
	_, leases := a.ranges("data")
	for _, r := range leases {
		if _, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: r, MaxItems: 20}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := feed.Place("k"); err == nil {
		t.Fatal("a key has a place although computed keys are wrong")
	}
	a.recreate(0)
	if _, err := feed.Source(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Place("k"); err != nil {
		t.Errorf("in the new container: %v", err)
	}
}

// A request names its container by path, and a position is a number that both containers have.
func TestPositionOfADeletedContainerIsRefused(t *testing.T) {
	for _, withPolicy := range []bool{false, true} {
		a := newAccount(t, 1, withPolicy)
		a.put(20, 5)
		feed := a.feed("data")
		before, err := feed.Source(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		read := changefeed.ReadRequest{Range: changefeed.FullRange(), Container: before.Container, Continuation: `"10"`, MaxItems: 100}
		if page, err := feed.Read(t.Context(), read); err != nil || len(page.Items) != 10 {
			t.Fatalf("%+v, error %v", page, err)
		}
		a.recreate(20)
		for _, when := range []string{"not noticed yet", "noticed"} {
			if page, err := feed.Read(t.Context(), read); !errors.Is(err, changefeed.ErrRecreated) {
				t.Errorf("policy %t, %s: page %+v, error %v", withPolicy, when, page, err)
			}
			after, err := feed.Source(t.Context())
			if err != nil || after == before || after.Database != before.Database {
				t.Errorf("the source was %+v and is %+v, error %v", before, after, err)
			}
		}
		read.Container, read.Continuation = "", ""
		if page, err := feed.Read(t.Context(), read); err != nil || len(page.Items) != 20 {
			t.Errorf("from the beginning: %+v, error %v", page, err)
		}
	}
}

// A request that names no container, such as that of a measured lag, is one to the container that the feed
// knows. A page of another one says nothing about its position.
func TestReadWithoutContainerIsOfTheKnownOne(t *testing.T) {
	a := newAccount(t, 1, true)
	a.put(20, 5)
	feed := a.feed("data")
	read := changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: `"10"`, MaxItems: 1}
	if _, err := feed.Read(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	a.recreate(20)
	if page, err := feed.Read(t.Context(), read); !errors.Is(err, changefeed.ErrRecreated) {
		t.Errorf("page %+v, error %v; want %v", page, err, changefeed.ErrRecreated)
	}
}

// Range ids begin again in a new container, with other bounds: here those of 4.
func TestBoundsOfADeletedContainerAreForgotten(t *testing.T) {
	a := newAccount(t, 4, true)
	feed := a.feed("data")
	ranges, err := feed.Ranges(t.Context())
	if err != nil || len(ranges) != 4 {
		t.Fatalf("ranges %v, error %v", ranges, err)
	}
	for _, merged := range []int{0, 2} {
		physical, err := a.srv.PartitionKeyRanges("db", "data")
		if err != nil {
			t.Fatal(err)
		}
		if err := a.srv.Merge("db", "data", physical[merged].ID, physical[merged+1].ID); err != nil {
			t.Fatal(err)
		}
		a.put(40, 40)
		seen := map[string]bool{}
		for _, r := range ranges {
			ids, _ := drain(t, feed, r, "")
			for _, id := range ids {
				seen[id] = true
			}
		}
		if len(seen) != 40 {
			t.Errorf("%d documents, want 40", len(seen))
		}
		if merged == 0 {
			a.recreate(0)
			if _, err := feed.Source(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// paths records the paths of requests.
type paths struct{ seen []string }

func (p *paths) Do(req *policy.Request) (*http.Response, error) {
	p.seen = append(p.seen, req.Raw().URL.Path)
	return req.Next()
}

func TestSourceIsOneRequest(t *testing.T) {
	p := &paths{}
	a := newAccountWith(t, cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 1}), p)
	feed := a.feed("data")
	for range 2 {
		p.seen = nil
		if _, err := feed.Source(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(p.seen) != 1 || !strings.HasSuffix(p.seen[0], "/colls/data") {
			t.Errorf("requests to %v", p.seen)
		}
	}
}
