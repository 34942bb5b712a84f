package cosmos

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"feedbox/changefeed"
)

// split splits the only physical partition of the script's container.
func (p *probe) split() {
	p.must("split", p.w.control(p.ctx, "dbs/"+p.w.database+"/colls/"+p.name+"/split", map[string]any{"range": "0"}))
}

var rangeScripts = []script{
	{name: "range-list", source: "azcosmos cosmos_container.go (ReadFeedRanges), emulator_cosmos_container_test.go", run: func(p *probe) {
		ranges, err := p.feed().feed.Ranges(p.ctx)
		p.must("read the feed ranges", err)
		slices.SortFunc(ranges, func(a, b changefeed.FeedRange) int { return strings.Compare(a.Min, b.Min) })
		next := ""
		for _, r := range ranges {
			p.expect(r.Min == next, "a range begins at %q, the one before ends at %q", r.Min, next)
			next = r.Max
		}
		p.expect(next == "FF", "the last range ends at %q, want FF", next)
	}},
	{name: "range-split-is-told", source: ".NET SDK, PartitionKeyRangeGoneRetryPolicy (410 with sub-status 1002); azcosmos cosmos_container_change_feed.go", control: true, run: func(p *probe) {
		f := p.feed()
		for i := range 20 {
			p.create(fmt.Sprint("k", i), fmt.Sprint(i))
		}
		_, position := f.all("", 100)
		p.split()
		_, err := f.feed.Read(p.ctx, changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: position, MaxItems: 100})
		var told *changefeed.SplitError
		p.expect(errors.As(err, &told) && len(told.Children) == 2, "a read of a range that was split: %v, want a split into two", err)
	}},
	{name: "range-position-is-inherited", source: "azcosmos cosmos_change_feed_composite_continuation.go (replaceHeadWithChildren: children take the parent's ETag)", control: true, run: func(p *probe) {
		f := p.feed()
		for i := range 40 {
			p.create(fmt.Sprint("k", i), fmt.Sprint(i))
		}
		first := f.read("", 15)
		seen := len(first.Items)
		p.split()
		for i := 40; i < 60; i++ {
			p.create(fmt.Sprint("k", i), fmt.Sprint(i))
		}
		_, err := f.feed.Read(p.ctx, changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: first.Continuation, MaxItems: 100})
		var told *changefeed.SplitError
		if !errors.As(err, &told) {
			p.must("read the parent", errors.Join(err, errors.New("no split was told")))
		}
		got := map[string]int{}
		for _, child := range told.Children {
			for position := first.Continuation; ; {
				page, err := f.feed.Read(p.ctx, changefeed.ReadRequest{Range: child, Continuation: position, MaxItems: 100})
				p.must("read a child", err)
				for i := range page.Items {
					got[p.documents([][]byte{page.Items[i].Raw})[0].ID]++
				}
				if position = page.Continuation; page.CaughtUp {
					break
				}
			}
		}
		for id, n := range got {
			p.expect(n == 1, "change %s is seen %d times by the children", id, n)
		}
		p.expect(len(got) == 60-seen, "the children show %d changes behind the parent's position, want %d", len(got), 60-seen)
	}},
}
