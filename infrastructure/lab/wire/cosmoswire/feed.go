package cosmoswire

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
)

const learnFeed = "Learn, Change feed in Azure Cosmos DB; Reading change feed (latest version mode)"

// feedReader reads the change feed of a script's container, as the processor does: range by range.
// Nothing is known of the order of changes in different ranges.
type feedReader struct {
	p      *probe
	feed   *cosmosfeed.Feed
	ranges []changefeed.FeedRange
}

// positions are places in the feed of each range; nil is the beginning.
type positions map[changefeed.FeedRange]string

func (p *probe) feed() *feedReader {
	f, err := cosmosfeed.NewFeed(p.target.Client, p.target.Database, p.name)
	p.must("open the change feed", err)
	ranges, err := f.Ranges(p.ctx)
	p.must("read the feed ranges", err)
	slices.SortFunc(ranges, func(a, b changefeed.FeedRange) int { return strings.Compare(a.Min, b.Min) })
	return &feedReader{p: p, feed: f, ranges: ranges}
}

// page returns one page of a range.
func (f *feedReader) page(r changefeed.FeedRange, position string, limit int) *changefeed.Page {
	page, err := f.feed.Read(f.p.ctx, changefeed.ReadRequest{Range: r, Continuation: position, MaxItems: limit})
	f.p.must("read the change feed", err)
	return page
}

// of returns the range of the changes of one key, which must be the only ones.
func (f *feedReader) of(pk string) changefeed.FeedRange {
	for _, r := range f.ranges {
		if page := f.page(r, "", 1); len(page.Items) > 0 {
			return r
		}
	}
	f.p.Contradict("no range has a change of the key %s", pk)
	f.p.Stop()
	return changefeed.FeedRange{}
}

// all reads every range to its end. It returns the changes, those of one key in order.
func (f *feedReader) all(from positions, limit int) (changes []document, end positions) {
	end = positions{}
	for _, r := range f.ranges {
		position := from[r]
		for pages := 0; ; pages++ {
			page := f.page(r, position, limit)
			changes = append(changes, f.changes(page)...)
			if position = page.Continuation; page.CaughtUp {
				break
			}
			if pages == 1000 {
				f.p.Contradict("the feed of the range %s does not end", r)
				f.p.Stop()
			}
		}
		end[r] = position
	}
	return changes, end
}

func (f *feedReader) changes(page *changefeed.Page) []document {
	raw := make([][]byte, len(page.Items))
	for i := range page.Items {
		raw[i] = page.Items[i].Raw
	}
	return f.p.documents(raw)
}

// sorted returns the ids of changes.
func sorted(changes []document) []string {
	ids := make([]string, len(changes))
	for i := range changes {
		ids[i] = changes[i].ID
	}
	slices.Sort(ids)
	return ids
}

// byKey returns the ids of the changes of each key, in order.
func byKey(changes []document) map[string][]string {
	keys := map[string][]string{}
	for i := range changes {
		keys[changes[i].PK] = append(keys[changes[i].PK], changes[i].ID)
	}
	return keys
}

var feedScripts = []Script{
	{Name: "feed-latest-versions", Topic: "change-feed", Source: learnFeed, run: func(p *probe) {
		for i := range 10 {
			p.create(fmt.Sprint("k", i%3), fmt.Sprint(i))
		}
		_, err := p.items.ReplaceItem(p.ctx, key("k0"), "3", item("k0", "3", `"n":1`), nil)
		p.must("replace", err)
		_, err = p.items.DeleteItem(p.ctx, key("k1"), "4", nil)
		p.must("delete", err)
		changes, _ := p.feed().all(nil, 4)
		got, want := byKey(changes), map[string][]string{"k0": {"0", "6", "9", "3"}, "k1": {"1", "7"}, "k2": {"2", "5", "8"}}
		p.expect(reflect.DeepEqual(got, want), "the feed shows %v, want each document once, changed ones last, no deleted ones: %v", got, want)
	}},
	{Name: "feed-positions", Topic: "change-feed", Source: learnFeed + "; azcosmos emulator_cosmos_container_test.go (TestEmulatorContainerChangeFeed)", run: func(p *probe) {
		f := p.feed()
		p.create("a", "1")
		changes, end := f.all(nil, 100)
		p.expect(slices.Equal(sorted(changes), []string{"1"}), "the feed shows %v, want 1", sorted(changes))
		idle := positions{}
		for _, r := range f.ranges {
			page := f.page(r, end[r], 100)
			p.expect(page.CaughtUp && len(page.Items) == 0, "after the last change the feed shows %d items and is not at its end", len(page.Items))
			p.expect(page.Continuation != "", "an answer without changes (304) has no position")
			idle[r] = page.Continuation
		}
		p.create("a", "2")
		p.create("b", "3")
		for name, from := range map[string]positions{"the last page": end, "the 304": idle} {
			for _, limit := range []int{1, 100} {
				changes, _ = f.all(from, limit)
				p.expect(slices.Equal(sorted(changes), []string{"2", "3"}), "from the position of %s: %v, want 2 3", name, sorted(changes))
			}
		}
	}},
	{Name: "feed-lsn", Topic: "change-feed", Source: "azure-cosmos-dotnet-v3, ChangeFeedItem and _lsn; Java SDK, ChangeFeedProcessor estimator", run: func(p *probe) {
		for i := range 20 {
			p.create("a", fmt.Sprint(i))
		}
		f := p.feed()
		page, last := f.page(f.of("a"), "", 0), int64(0)
		for i := range page.Items {
			p.expect(page.Items[i].LSN > last, "LSN %d comes after %d: not rising", page.Items[i].LSN, last)
			p.expect(page.Items[i].Timestamp > 0, "a change has no _ts")
			last = page.Items[i].LSN
		}
		p.expect(len(page.Items) == 20, "%d changes, want 20", len(page.Items))
		p.expect(page.EndLSN >= last, "the session token of a page says LSN %d, the last item %d", page.EndLSN, last)
	}},
	{Name: "feed-page-size", Topic: "change-feed", Source: "REST reference, x-ms-max-item-count", run: func(p *probe) {
		for i := range 12 {
			p.create("a", fmt.Sprint(i))
		}
		f := p.feed()
		page := f.page(f.of("a"), "", 5)
		p.expect(len(page.Items) > 0 && len(page.Items) <= 5, "a page of at most 5 has %d", len(page.Items))
	}},
	{Name: "feed-from-now", Topic: "change-feed", Source: "JavaScript SDK, ChangeFeedStartFrom.Now (If-None-Match: *); .NET SDK, ChangeFeedStartFromNow", run: func(p *probe) {
		p.create("a", "before")
		f := p.feed()
		now := positions{}
		for _, r := range f.ranges {
			position, err := f.feed.Now(p.ctx, r)
			p.must("ask for the end of the feed", err)
			now[r] = position
		}
		p.create("a", "after")
		changes, _ := f.all(now, 100)
		p.expect(slices.Equal(sorted(changes), []string{"after"}), "from now: %v, want after", sorted(changes))
	}},
	{Name: "feed-from-time", Topic: "change-feed", Source: learnFeed + " (If-Modified-Since); azcosmos cosmos_change_feed_request_options.go", run: func(p *probe) {
		p.create("a", "before")
		p.pause(2500 * time.Millisecond) // times are whole seconds
		reply, err := p.items.CreateItem(p.ctx, key("a"), item("a", "after"), nil)
		p.must("create", err)
		sent, err := http.ParseTime(reply.RawResponse.Header.Get("Date"))
		if err != nil { // the emulators may omit it
			sent = time.Now()
		}
		f := p.feed()
		var changes []document
		for _, r := range f.ranges {
			page, err := f.feed.Read(p.ctx, changefeed.ReadRequest{Range: r, Since: sent.Add(-time.Second)})
			p.must("read from a time", err)
			changes = append(changes, f.changes(page)...)
		}
		p.expect(slices.Equal(sorted(changes), []string{"after"}), "from a time: %v, want after", sorted(changes))
	}},
	{Name: "feed-expired", Topic: "ttl", Source: restTTL + "; " + learnFeed, ttl: true, run: func(p *probe) {
		f := p.feed()
		p.create("a", "short", `"ttl":1`)
		p.create("a", "long", `"ttl":600`)
		p.wait("expiry", 20*time.Second, func() bool { return p.read("a", "short") == http.StatusNotFound })
		changes, _ := f.all(nil, 100)
		p.expect(slices.Equal(sorted(changes), []string{"long"}), "the feed shows %v, want what has not expired: long", sorted(changes))
	}},
	{Name: "feed-order-of-a-key", Topic: "change-feed", Source: learnFeed + " (order within a partition key)", run: func(p *probe) {
		want := map[string][]string{}
		for i := range 60 {
			pk, id := fmt.Sprint("k", i%5), fmt.Sprint(i)
			p.create(pk, id)
			want[pk] = append(want[pk], id)
		}
		changes, _ := p.feed().all(nil, 7)
		got := byKey(changes)
		for pk := range want {
			p.expect(slices.Equal(got[pk], want[pk]), "key %s: %v, want %v", pk, got[pk], want[pk])
		}
	}},
	{Name: "feed-session-token", Topic: "change-feed", Source: ".NET SDK, ChangeFeedEstimatorIterator (lag from the session token)", run: func(p *probe) {
		p.create("a", "1")
		f := p.feed()
		_, end := f.all(nil, 100)
		r := f.of("a")
		idle := f.page(r, end[r], 100)
		p.create("a", "2")
		page := f.page(r, end[r], 100)
		p.expect(idle.EndLSN > 0 && page.EndLSN > idle.EndLSN, "the session token says LSN %d on an idle answer and %d after a change", idle.EndLSN, page.EndLSN)
	}},
	{Name: "feed-deep-batch-order", Topic: "change-feed-transaction", Source: learnFeed + "; nothing says in what order a transaction's documents come", run: func(p *probe) {
		got, _ := p.execute(func(b *azcosmos.TransactionalBatch) {
			for _, id := range []string{"z", "m", "a"} {
				b.CreateItem(item("a", id), nil)
			}
		})
		p.expect(slices.Equal(got, []int{201, 201, 201}), "statuses %v", got)
		changes, _ := p.feed().all(nil, 100)
		p.expect(slices.Equal(sorted(changes), []string{"a", "m", "z"}), "the feed shows %v of the transaction, in whatever order", sorted(changes))
	}},
}
