package cosmoswire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
)

// splitLimit is how long a split or a merge may take on an account.
const splitLimit = 2 * time.Hour

// splitPoll is the interval of reads that notice the end of a split or a merge on an account.
const splitPoll = 10 * time.Second

// split splits a physical range of the script's container, and returns its children. Our emulator
// does it on request. The service splits when the throughput is raised above what the range can
// serve: to 13,000 RU/s here, for which the range needs minutes.
func (p *probe) split(f *feedReader, parent changefeed.FeedRange, position string) []changefeed.FeedRange {
	if p.target.Emulator {
		p.must("split", p.target.Control(p.ctx, p.controlPath("split"), map[string]any{"range": physical(f.page(parent, "", 1))}))
	} else {
		_, err := p.items.ReplaceThroughput(p.ctx, azcosmos.NewManualThroughputProperties(13_000), nil)
		p.must("raise the throughput", err)
	}
	var told *changefeed.SplitError
	p.until("the split", func() bool { // by a read, because the SDK caches the list of ranges until one fails
		_, err := f.feed.Read(p.ctx, changefeed.ReadRequest{Range: parent, Continuation: position, MaxItems: 100})
		if err != nil && !errors.As(err, &told) {
			p.must("read a range during its split", err)
		}
		return err != nil
	})
	return told.Children
}

// merge merges the two ranges of a split. The service merges ranges whose container needs less
// throughput, on request to Azure Resource Manager.
func (p *probe) merge(f *feedReader, children []changefeed.FeedRange, from positions) {
	before := map[string]bool{}
	for _, child := range children {
		before[physical(f.page(child, from[child], 1))] = true
	}
	if p.target.Emulator {
		p.must("merge", p.target.Control(p.ctx, p.controlPath("merge"), map[string]any{"left": physical(f.page(children[0], "", 1)), "right": physical(f.page(children[1], "", 1))}))
	} else {
		_, err := p.items.ReplaceThroughput(p.ctx, azcosmos.NewManualThroughputProperties(4_000), nil)
		p.must("lower the throughput", err)
		p.must("request the merge", p.target.Merge(p.ctx, p.target.Database, p.name))
	}
	p.until("the merge", func() bool { return !before[physical(f.page(children[0], from[children[0]], 1))] })
}

// until waits for a change of ranges. If it does not come, nothing is known.
func (p *probe) until(what string, ok func() bool) {
	for end := time.Now().Add(splitLimit); !ok(); p.pause(splitPoll) {
		if time.Now().After(end) {
			p.must(what, fmt.Errorf("not within %v", splitLimit))
		}
	}
}

func (p *probe) controlPath(act string) string {
	return "dbs/" + p.target.Database + "/colls/" + p.name + "/" + act
}

// physical returns the id of the physical range that replied.
func physical(page *changefeed.Page) string {
	id, _, _ := strings.Cut(page.Term, ":")
	return id
}

// spread creates documents first to last-1, each with a key of its own.
func (p *probe) spread(first, last int) {
	for i := first; i < last; i++ {
		p.create(fmt.Sprint("k", i), fmt.Sprint(i))
	}
}

// once checks that changes are n documents, each once.
func (p *probe) once(where string, changes []document, n int) {
	got := map[string]int{}
	for _, id := range sorted(changes) {
		got[id]++
	}
	for id, times := range got {
		p.expect(times == 1, "%s: change %s is seen %d times", where, id, times)
	}
	p.expect(len(got) == n, "%s: the ranges show %d changes, want %d", where, len(got), n)
}

// ends returns the highest LSN of each range.
func (f *feedReader) ends(from positions) map[changefeed.FeedRange]int64 {
	ends := map[changefeed.FeedRange]int64{}
	for _, r := range f.ranges {
		ends[r] = f.page(r, from[r], 100).EndLSN
	}
	return ends
}

// rising checks that all changes after a position have LSNs above last, in rising order.
func (f *feedReader) rising(where string, r changefeed.FeedRange, position string, last int64) {
	only := &feedReader{p: f.p, feed: f.feed, ranges: []changefeed.FeedRange{r}}
	changes, _ := only.all(positions{r: position}, 100)
	f.p.expect(len(changes) > 0, "%s: the range %s shows no change", where, r)
	for i := range changes {
		f.p.expect(changes[i].LSN > last, "%s: LSN %d of range %s comes after %d", where, changes[i].LSN, r, last)
		last = changes[i].LSN
	}
}

var rangeScripts = []Script{
	{Name: "range-list", Source: "azcosmos cosmos_container.go (ReadFeedRanges), emulator_cosmos_container_test.go", run: func(p *probe) {
		next := ""
		ranges := p.feed().ranges
		for _, r := range ranges {
			p.expect(r.Min == next, "a range begins at %q, the one before ends at %q", r.Min, next)
			next = r.Max
		}
		p.expect(p.target.Ranges == 0 || len(ranges) == p.target.Ranges, "%d ranges, want %d", len(ranges), p.target.Ranges)
		p.expect(next == "FF", "the last range ends at %q, want FF", next)
	}},
	{Name: "range-split-is-told", Source: ".NET SDK, PartitionKeyRangeGoneRetryPolicy (410 with sub-status 1002); azcosmos cosmos_container_change_feed.go", splits: true, run: func(p *probe) {
		f := p.feed()
		p.spread(0, 20)
		_, end := f.all(nil, 100)
		first := f.ranges[0]
		children := p.split(f, first, end[first])
		tiled := len(children) > 1 && children[0].Min == first.Min && children[len(children)-1].Max == first.Max
		for i := 1; tiled && i < len(children); i++ {
			tiled = children[i-1].Max == children[i].Min
		}
		p.expect(tiled, "the range %s was split into %v, want ranges that tile it", first, children)
		for _, child := range children { // P4
			for _, d := range f.changes(f.page(child, "", 100)) {
				place, err := f.feed.Place(d.PK)
				p.must("compute the place of a key", err)
				p.expect(place >= child.Min && place < child.Max, "the key %s is at %s by our hash, but it was read from the range %s", d.PK, place, child)
			}
		}
	}},
	{Name: "range-position-is-inherited", Source: "azcosmos cosmos_change_feed_composite_continuation.go (replaceHeadWithChildren: children take the parent's ETag)", splits: true, run: func(p *probe) {
		f := p.feed()
		p.spread(0, 40)
		from, seen := positions{}, 0
		for _, r := range f.ranges {
			page := f.page(r, "", 8)
			from[r] = page.Continuation
			seen += len(page.Items)
		}
		first := f.ranges[0]
		f.inherit(first, p.split(f, first, from[first]), from)
		p.spread(40, 60)
		changes, _ := f.all(from, 100)
		p.once("after the positions of before the split", changes, 60-seen)
	}},
	{Name: "range-lsn-continues", Source: "azcosmos, .NET and Java give children the parent's position; .NET, change feed estimator (lag is a difference of LSNs)", splits: true, merges: true, run: func(p *probe) {
		f := p.feed()
		p.spread(0, 40)
		_, from := f.all(nil, 100)
		first := f.ranges[0]
		parent := f.ends(from)[first]
		children := p.split(f, first, from[first])
		f.inherit(first, children, from)
		p.spread(40, 100)
		for _, child := range children {
			f.rising("after the split", child, from[child], parent)
		}
		_, from = f.all(from, 100)
		ends := f.ends(from)
		p.merge(f, children, from)
		p.spread(100, 160)
		for _, child := range children { // each shows its part of the merged range
			f.rising("after the merge", child, from[child], max(ends[children[0]], ends[children[1]]))
		}
	}},
	{Name: "range-merged-answers", Source: "azcosmos (capability header, overlap of ranges); .NET, RequestInvokerHandler (bounds beside a range id)", splits: true, merges: true, run: func(p *probe) {
		f := p.feed()
		p.spread(0, 40)
		first := f.ranges[0]
		_, from := f.all(nil, 100)
		children := p.split(f, first, from[first])
		f.inherit(first, children, from)
		p.spread(40, 80)
		for _, child := range children { // one page: the rest is read after the merge
			page := f.page(child, from[child], 3)
			p.once("a page of a child", f.changes(page), len(page.Items))
			from[child] = page.Continuation
		}
		unread, _ := f.all(from, 100)
		p.merge(f, children, from)
		p.spread(80, 120)
		changes, _ := f.all(from, 100)
		p.once("after the merge", changes, len(unread)+40)
	}},
}

// inherit replaces a range by its children, which continue at its position.
func (f *feedReader) inherit(parent changefeed.FeedRange, children []changefeed.FeedRange, from positions) {
	for _, child := range children {
		from[child] = from[parent]
	}
	f.ranges = slices.Concat(children, slices.DeleteFunc(slices.Clone(f.ranges), func(r changefeed.FeedRange) bool { return r == parent }))
}
