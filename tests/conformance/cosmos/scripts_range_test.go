package cosmos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
)

// splitLimit is how long a split may take on an account.
const splitLimit = 2 * time.Hour

// split splits the first physical range of the script's container, and returns it. Our emulator
// does it on request. The service splits when the throughput is raised above what the range can
// serve: to 13,000 RU/s here, for which the range needs minutes.
func (p *probe) split(f *feedReader) changefeed.FeedRange {
	first := f.ranges[0]
	if p.w.kind == ours {
		id, _, _ := strings.Cut(f.page(first, "", 1).Term, ":")
		p.must("split", p.w.control(p.ctx, "dbs/"+p.w.database+"/colls/"+p.name+"/split", map[string]any{"range": id}))
		return first
	}
	_, err := p.items.ReplaceThroughput(p.ctx, azcosmos.NewManualThroughputProperties(13_000), nil)
	p.must("raise the throughput", err)
	p.wait("the split of the range "+first.String(), splitLimit, func() bool {
		ranges, err := f.feed.Ranges(p.ctx)
		return err == nil && !slices.Contains(ranges, first)
	})
	return first
}

var rangeScripts = []script{
	{name: "range-list", source: "azcosmos cosmos_container.go (ReadFeedRanges), emulator_cosmos_container_test.go", run: func(p *probe) {
		next := ""
		ranges := p.feed().ranges
		for _, r := range ranges {
			p.expect(r.Min == next, "a range begins at %q, the one before ends at %q", r.Min, next)
			next = r.Max
		}
		p.expect(p.w.ranges == 0 || len(ranges) == p.w.ranges, "%d ranges, want %d", len(ranges), p.w.ranges)
		p.expect(next == "FF", "the last range ends at %q, want FF", next)
	}},
	{name: "range-split-is-told", source: ".NET SDK, PartitionKeyRangeGoneRetryPolicy (410 with sub-status 1002); azcosmos cosmos_container_change_feed.go", splits: true, run: func(p *probe) {
		f := p.feed()
		for i := range 20 {
			p.create(fmt.Sprint("k", i), fmt.Sprint(i))
		}
		_, end := f.all(nil, 100)
		first := p.split(f)
		_, err := f.feed.Read(p.ctx, changefeed.ReadRequest{Range: first, Continuation: end[first], MaxItems: 100})
		var told *changefeed.SplitError
		p.expect(errors.As(err, &told) && len(told.Children) == 2, "a read of a range that was split: %v, want a split into two", err)
	}},
	{name: "range-position-is-inherited", source: "azcosmos cosmos_change_feed_composite_continuation.go (replaceHeadWithChildren: children take the parent's ETag)", splits: true, run: func(p *probe) {
		f := p.feed()
		for i := range 40 {
			p.create(fmt.Sprint("k", i), fmt.Sprint(i))
		}
		before := map[changefeed.FeedRange]*changefeed.Page{}
		seen := 0
		for _, r := range f.ranges {
			before[r] = f.page(r, "", 8)
			seen += len(before[r].Items)
		}
		first := p.split(f)
		for i := 40; i < 60; i++ {
			p.create(fmt.Sprint("k", i), fmt.Sprint(i))
		}
		_, err := f.feed.Read(p.ctx, changefeed.ReadRequest{Range: first, Continuation: before[first].Continuation, MaxItems: 100})
		var told *changefeed.SplitError
		if !errors.As(err, &told) {
			p.must("read the parent", errors.Join(err, errors.New("no split was reported")))
		}
		from := positions{}
		for _, child := range told.Children {
			from[child] = before[first].Continuation
		}
		for _, r := range f.ranges[1:] {
			from[r] = before[r].Continuation
		}
		f.ranges = slices.Concat(told.Children, f.ranges[1:])
		got := map[string]int{}
		changes, _ := f.all(from, 100)
		for _, id := range sorted(changes) {
			got[id]++
		}
		for id, n := range got {
			p.expect(n == 1, "change %s is seen %d times", id, n)
		}
		p.expect(len(got) == 60-seen, "the ranges show %d changes after the positions of before the split, want %d", len(got), 60-seen)
	}},
}
