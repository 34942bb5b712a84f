package cosmos

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
)

const learnFeed = "Learn, Change feed in Azure Cosmos DB; Reading change feed (latest version mode)"

// feedReader reads the change feed of a script's container, which has one physical
// partition, as the processor does.
type feedReader struct {
	p    *probe
	feed *cosmosfeed.Feed
}

func (p *probe) feed() *feedReader {
	f, err := cosmosfeed.NewFeed(p.w.client, p.w.database, p.name)
	p.must("open the change feed", err)
	return &feedReader{p: p, feed: f}
}

// read returns one page from a position; "" is the beginning.
func (f *feedReader) read(position string, limit int) *changefeed.Page {
	page, err := f.feed.Read(f.p.ctx, changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: position, MaxItems: limit})
	f.p.must("read the change feed", err)
	return page
}

// all reads to the end and returns the ids in order, and the position.
func (f *feedReader) all(position string, limit int) (ids []string, end string) {
	for range 1000 {
		page := f.read(position, limit)
		for i := range page.Items {
			ids = append(ids, f.p.documents([][]byte{page.Items[i].Raw})[0].ID)
		}
		if position = page.Continuation; page.CaughtUp {
			return ids, position
		}
	}
	f.p.expect(false, "the change feed does not end")
	return ids, position
}

var feedScripts = []script{
	{name: "feed-latest-versions", topic: "change-feed", source: learnFeed, run: func(p *probe) {
		for i := range 10 {
			p.create(fmt.Sprint("k", i%3), fmt.Sprint(i))
		}
		_, err := p.items.ReplaceItem(p.ctx, key("k0"), "3", item("k0", "3", `"n":1`), nil)
		p.must("replace", err)
		_, err = p.items.DeleteItem(p.ctx, key("k1"), "4", nil)
		p.must("delete", err)
		ids, _ := p.feed().all("", 4)
		want := []string{"0", "1", "2", "5", "6", "7", "8", "9", "3"}
		p.expect(slices.Equal(ids, want), "the feed shows %v, want each document once, changed ones last, no deleted ones: %v", ids, want)
	}},
	{name: "feed-positions", topic: "change-feed", source: learnFeed + "; azcosmos emulator_cosmos_container_test.go (TestEmulatorContainerChangeFeed)", run: func(p *probe) {
		f := p.feed()
		p.create("a", "1")
		ids, position := f.all("", 100)
		p.expect(slices.Equal(ids, []string{"1"}), "the feed shows %v, want 1", ids)
		again := f.read(position, 100)
		p.expect(again.CaughtUp && len(again.Items) == 0, "behind the last change the feed shows %d items and is not at its end", len(again.Items))
		p.expect(again.Continuation != "", "an answer without changes (304) has no position")
		p.create("a", "2")
		p.create("b", "3")
		ids, _ = f.all(position, 1)
		p.expect(slices.Equal(ids, []string{"2", "3"}), "from the position of the last page: %v, want 2 3", ids)
		ids, _ = f.all(again.Continuation, 100)
		p.expect(slices.Equal(ids, []string{"2", "3"}), "from the position of the 304: %v, want 2 3", ids)
	}},
	{name: "feed-lsn", topic: "change-feed", source: "azure-cosmos-dotnet-v3, ChangeFeedItem and _lsn; Java SDK, ChangeFeedProcessor estimator", run: func(p *probe) {
		for i := range 20 {
			p.create("a", fmt.Sprint(i))
		}
		page := p.feed().read("", 0)
		last := int64(0)
		for i := range page.Items {
			p.expect(page.Items[i].LSN > last, "LSN %d comes after %d: not rising", page.Items[i].LSN, last)
			p.expect(page.Items[i].Timestamp > 0, "a change has no _ts")
			last = page.Items[i].LSN
		}
		p.expect(len(page.Items) == 20, "%d changes, want 20", len(page.Items))
		p.expect(page.EndLSN >= last, "the session token of a page says LSN %d, the last item %d", page.EndLSN, last)
	}},
	{name: "feed-page-size", topic: "change-feed", source: "REST reference, x-ms-max-item-count", run: func(p *probe) {
		for i := range 12 {
			p.create("a", fmt.Sprint(i))
		}
		page := p.feed().read("", 5)
		p.expect(len(page.Items) > 0 && len(page.Items) <= 5, "a page of at most 5 has %d", len(page.Items))
	}},
	{name: "feed-from-now", topic: "change-feed", source: "JavaScript SDK, ChangeFeedStartFrom.Now (If-None-Match: *); .NET SDK, ChangeFeedStartFromNow", run: func(p *probe) {
		p.create("a", "before")
		f := p.feed()
		now, err := f.feed.Now(p.ctx, changefeed.FullRange())
		p.must("ask for the end of the feed", err)
		p.create("a", "after")
		ids, _ := f.all(now, 100)
		p.expect(slices.Equal(ids, []string{"after"}), "from now: %v, want after", ids)
	}},
	{name: "feed-from-time", topic: "change-feed", source: learnFeed + " (If-Modified-Since); azcosmos cosmos_change_feed_request_options.go", run: func(p *probe) {
		p.create("a", "before")
		p.pause(2500 * time.Millisecond) // times are whole seconds
		reply, err := p.items.CreateItem(p.ctx, key("a"), item("a", "after"), nil)
		p.must("create", err)
		sent, err := http.ParseTime(reply.RawResponse.Header.Get("Date"))
		if err != nil { // the emulators may omit it
			sent = time.Now()
		}
		page, err := p.feed().feed.Read(p.ctx, changefeed.ReadRequest{Range: changefeed.FullRange(), Since: sent.Add(-time.Second)})
		p.must("read from a time", err)
		ids := []string{}
		for i := range page.Items {
			ids = append(ids, p.documents([][]byte{page.Items[i].Raw})[0].ID)
		}
		p.expect(slices.Equal(ids, []string{"after"}), "from a time: %v, want after", ids)
	}},
	{name: "feed-expired", topic: "ttl", source: restTTL + "; " + learnFeed, ttl: true, run: func(p *probe) {
		f := p.feed()
		p.create("a", "short", `"ttl":1`)
		p.create("a", "long", `"ttl":600`)
		p.wait("expiry", 20*time.Second, func() bool { return p.read("a", "short") == http.StatusNotFound })
		ids, _ := f.all("", 100)
		p.expect(slices.Equal(ids, []string{"long"}), "the feed shows %v, want what has not expired: long", ids)
	}},
	{name: "feed-order-of-a-key", topic: "change-feed", source: learnFeed + " (order within a partition key)", run: func(p *probe) {
		want := map[string][]string{}
		for i := range 60 {
			pk, id := fmt.Sprint("k", i%5), fmt.Sprint(i)
			p.create(pk, id)
			want[pk] = append(want[pk], id)
		}
		got := map[string][]string{}
		f, position := p.feed(), ""
		for range 100 {
			page := f.read(position, 7)
			for i := range page.Items {
				d := p.documents([][]byte{page.Items[i].Raw})[0]
				got[d.PK] = append(got[d.PK], d.ID)
			}
			if position = page.Continuation; page.CaughtUp {
				break
			}
		}
		for pk := range want {
			p.expect(slices.Equal(got[pk], want[pk]), "key %s: %v, want %v", pk, got[pk], want[pk])
		}
	}},
	{name: "feed-session-token", topic: "change-feed", source: ".NET SDK, ChangeFeedEstimatorIterator (lag from the session token)", run: func(p *probe) {
		p.create("a", "1")
		f := p.feed()
		_, position := f.all("", 100)
		idle := f.read(position, 100)
		p.create("a", "2")
		page := f.read(position, 100)
		p.expect(idle.EndLSN > 0 && page.EndLSN > idle.EndLSN, "the session token says LSN %d on an idle answer and %d after a change", idle.EndLSN, page.EndLSN)
	}},
	{name: "feed-deep-batch-order", topic: "change-feed-transaction", source: learnFeed + "; nothing says in what order a transaction's documents come", run: func(p *probe) {
		got, _ := p.execute(func(b *azcosmos.TransactionalBatch) {
			for _, id := range []string{"z", "m", "a"} {
				b.CreateItem(item("a", id), nil)
			}
		})
		p.expect(slices.Equal(got, []int{201, 201, 201}), "statuses %v", got)
		ids, _ := p.feed().all("", 100)
		slices.Sort(ids)
		p.expect(slices.Equal(ids, []string{"a", "m", "z"}), "the feed shows %v of the transaction, in whatever order", ids)
	}},
}
