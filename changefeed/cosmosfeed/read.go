package cosmosfeed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/internal/jsonscan"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var (
	errRangeUnnamed  = errors.New("the reply does not tell which physical range it is from")
	errRangesChanged = errors.New("the physical ranges change faster than they can be listed")
)

// Read implements changefeed.Feed.
func (f *Feed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	a, err := f.describe(ctx)
	if err != nil {
		return nil, err
	}
	page, err := f.read(ctx, a, req)
	if err != nil {
		return nil, fmt.Errorf("read change feed of %s, range %s: %w", f.container.ID(), req.Range, err)
	}
	return page, nil
}

// read asks until it knows the bounds of the physical range that replied: once,
// or, for a range that replies for the first time, once more.
func (f *Feed) read(ctx context.Context, a *about, req changefeed.ReadRequest) (*changefeed.Page, error) {
	options, err := f.options(a, req)
	if err != nil {
		return nil, err
	}
	var seen seenRange
	var charge float32
	const looks = 4 // more than one in vain means that ranges come and go
	for range looks {
		r := &feedRead{rng: req.Range, physical: &f.physical, seen: seen}
		resp, err := f.container.ReadChangeFeed(withFeedRead(ctx, r), options)
		if err != nil {
			recycle(r.body)
			return nil, translate(err)
		}
		charge += resp.RequestCharge
		resp.RequestCharge = charge
		position, err := decodeToken(resp.ContinuationToken, req.Range)
		if err != nil {
			recycle(r.body) // of several ranges: nothing of it is used
			return nil, err
		}
		id, read, err := f.source(req.Range, &resp, seen)
		if err == nil {
			return f.page(a, req, read, position, &resp, r)
		}
		recycle(r.body)
		if !errors.Is(err, errRangesChanged) {
			return nil, err
		}
		listed, err := f.Ranges(ctx)
		if err != nil {
			return nil, err
		}
		seen = matchRange(id, req.Range, listed)
	}
	return nil, errRangesChanged
}

// options are the SDK's for one read.
func (f *Feed) options(a *about, req changefeed.ReadRequest) (*azcosmos.ChangeFeedOptions, error) {
	continuation, err := encodeToken(a.source.Container, req.Range, req.Continuation)
	if err != nil {
		return nil, err
	}
	options := &azcosmos.ChangeFeedOptions{
		Continuation: &continuation, MaxItemCount: int32(min(req.MaxItems, 1<<30)),
	}
	if req.Continuation == "" && !req.Since.IsZero() {
		options.StartFrom = &req.Since // never together with a position
	}
	return options, nil
}

// source is the physical range a reply is from, by the id the request went to.
// Its bounds are unknown (errRangesChanged) until what was seen is confirmed.
func (f *Feed) source(asked changefeed.FeedRange, resp *azcosmos.ChangeFeedResponse, seen seenRange) (id string, bounds changefeed.FeedRange, err error) {
	if asked.Contains(changefeed.FullRange()) {
		return "", changefeed.FullRange(), nil // one reply for everything is of one range
	}
	if resp.RawResponse != nil && resp.RawResponse.Request != nil {
		id = resp.RawResponse.Request.Header.Get(headerRangeID)
	}
	if id == "" {
		return "", bounds, errRangeUnnamed
	}
	if id == seen.id {
		f.physical.learn(id, seen.bounds)
	}
	bounds, known := f.physical.bounds(id)
	if !known {
		return id, bounds, errRangesChanged
	}
	return id, bounds, nil
}

// page turns a reply of one physical range into a page.
func (f *Feed) page(a *about, req changefeed.ReadRequest, read changefeed.FeedRange, position string,
	resp *azcosmos.ChangeFeedResponse, r *feedRead,
) (*changefeed.Page, error) {
	page := &changefeed.Page{
		Continuation: position, RequestCharge: float64(resp.RequestCharge),
		CaughtUp: resp.RawResponse != nil && resp.RawResponse.StatusCode == http.StatusNotModified,
	}
	if resp.RawResponse != nil {
		page.SessionToken = resp.RawResponse.Header.Get(headerSession)
		page.EndLSN = sessionLSN(page.SessionToken)
	}
	began := time.Now()
	if err := f.decode(a, req, read, page, resp, r); err != nil {
		recycle(r.body)
		return nil, err
	}
	page.Decode = time.Since(began)
	return page, nil
}

// decode fills in the items. A body the policy took goes with them.
func (f *Feed) decode(a *about, req changefeed.ReadRequest, read changefeed.FeedRange, page *changefeed.Page,
	resp *azcosmos.ChangeFeedResponse, r *feedRead,
) error {
	g, err := f.newFilter(a, req.Range, read)
	if err != nil {
		return err
	}
	d := newDecoder(a.keys, g)
	if r.body != nil {
		page.Bytes = len(*r.body)
		if page.Items, err = d.page(*r.body, make([]changefeed.Item, 0, max(req.MaxItems, 16))); err != nil {
			return f.rememberDoubt(g, err)
		}
		body := r.body
		page.Release = func() { recycle(body) }
	} else {
		page.Items = make([]changefeed.Item, 0, len(resp.Items))
		for _, raw := range resp.Items {
			c := jsonscan.NewCursor(raw)
			item, own, err := d.document(&c, raw)
			if err != nil {
				return f.rememberDoubt(g, err)
			}
			page.Bytes += len(raw)
			if own {
				page.Items = append(page.Items, item)
			}
		}
	}
	page.Doubt = f.rememberDoubt(g, nil)
	return nil
}

// physicalRanges remembers the bounds of physical ranges by id. Splits and merges
// make ranges with ids of their own, and the bounds of an id never change: what is
// here does not go out of date.
type physicalRanges struct{ byID sync.Map }

func (p *physicalRanges) learn(id string, r changefeed.FeedRange) { p.byID.Store(id, r) }

func (p *physicalRanges) bounds(id string) (r changefeed.FeedRange, known bool) {
	v, known := p.byID.Load(id)
	if known {
		r, known = v.(changefeed.FeedRange)
	}
	return r, known
}

// seenRange is a physical range that replied, with the bounds a list made after
// that reply has for it.
//
// The SDK names the range it read by id and lists ranges without ids, from a cache
// that may change at any time. But its cache only moves on, and an id that is gone
// does not come back: if the same range replies before and after the list was
// made, it was in the list, as the one that holds what was asked for.
type seenRange struct {
	id     string
	bounds changefeed.FeedRange
}

// matchRange finds the one listed range that overlaps what id replied for.
func matchRange(id string, asked changefeed.FeedRange, listed []changefeed.FeedRange) seenRange {
	listed = slices.DeleteFunc(listed, func(r changefeed.FeedRange) bool { return !r.Overlaps(asked) })
	if len(listed) != 1 {
		return seenRange{} // the list is of another time
	}
	return seenRange{id: id, bounds: listed[0]}
}
