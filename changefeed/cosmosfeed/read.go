package cosmosfeed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/internal/jsonscan"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var (
	errRangeUnnamed  = errors.New("the reply does not name its physical range")
	errRangesChanged = errors.New("the physical ranges change faster than they can be listed")
	errNoBeginning   = fmt.Errorf("the feed of all versions has no beginning and no times: rewind the lease to now, which skips unsent changes, or read the feed of latest versions: %w", changefeed.ErrPermanent)
	errNoPolicy      = fmt.Errorf("the client cannot read the feed of all versions: make it with cosmosfeed.ClientOptions: %w", changefeed.ErrPermanent)
)

// Read implements changefeed.Feed.
func (f *Feed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	page, err := f.read(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("read change feed of %s, range %s: %w", f.container.ID(), req.Range, err)
	}
	return page, nil
}

// read repeats the request until it knows the bounds of the physical range that replied. It
// needs one request, or two for a range that replies for the first time.
func (f *Feed) read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if f.versions && req.Continuation == "" {
		return nil, errNoBeginning
	}
	a, err := f.describe(ctx)
	if err != nil {
		return nil, err
	}
	if req.Container != "" && req.Container != a.source.Container {
		return nil, fmt.Errorf("the position is one of container %s, now it is %s: %w", req.Container, a.source.Container, changefeed.ErrRecreated)
	}
	continuation, err := encodeToken(a.source.Container, req.Range, req.Continuation)
	if err != nil {
		return nil, err
	}
	options := &azcosmos.ChangeFeedOptions{
		Continuation: &continuation, MaxItemCount: int32(min(req.MaxItems, 1<<30)),
	}
	if req.Continuation == "" && !req.Since.IsZero() {
		// Never with a position, because the SDK would send it again with every later one. A
		// second earlier, because the service starts after the given second.
		since := req.Since.Add(-time.Second)
		options.StartFrom = &since
	}
	var seen seenRange
	var charge float64
	const attempts = 4 // more than one failure means that ranges change continuously
	for range attempts {
		r := &feedRead{Feed: f, about: a, req: req, seen: seen}
		page, err := r.page(ctx, options)
		charge += r.charge
		if err == nil {
			page.RequestCharge = charge
			return page, nil
		}
		recycle(r.body)
		if !errors.Is(err, errRangesChanged) {
			return nil, err
		}
		listed, err := f.Ranges(ctx)
		if err != nil {
			return nil, err
		}
		seen = matchRange(r.source, req.Range, listed)
	}
	return nil, errRangesChanged
}

// page makes one request. The page's items are slices of the body, if the policy took it.
func (r *feedRead) page(ctx context.Context, options *azcosmos.ChangeFeedOptions) (*changefeed.Page, error) {
	resp, err := r.container.ReadChangeFeed(context.WithValue(ctx, feedReadKey{}, r), options)
	if err != nil {
		return nil, r.refused(translate(err))
	}
	if r.versions && !r.sent {
		return nil, errNoPolicy // the reply has the latest versions only
	}
	r.charge = float64(resp.RequestCharge)
	if err := sameContainer(resp.ResourceID, r.about.source.Container); err != nil {
		return nil, err
	}
	page := &changefeed.Page{}
	if page.Continuation, err = decodeToken(resp.ContinuationToken, r.req.Range); err != nil {
		return nil, err // of several ranges: the reply is not used
	}
	if reply := resp.RawResponse; reply != nil {
		page.CaughtUp = reply.StatusCode == http.StatusNotModified
		page.SessionToken = reply.Header.Get(headerSession)
		page.EndLSN = sessionLSN(page.SessionToken)
		page.Term = sessionTerm(page.SessionToken)
		if reply.Request != nil {
			r.source = reply.Request.Header.Get(headerRangeID)
		}
	}
	read, err := r.physicalRange()
	if err != nil {
		return nil, err
	}
	return page, r.decode(read, page, resp.Items)
}

// refused explains that the service refuses the feed of all versions. Its answer does not say whether the
// account lacks the feed or the feed lacks the position.
func (r *feedRead) refused(err error) error {
	var reply *azcore.ResponseError
	if !r.versions || !errors.As(err, &reply) || reply.StatusCode != http.StatusBadRequest {
		return err
	}
	return fmt.Errorf("%w: the account needs continuous backup for the feed of all versions, and the feed has no changes from before its retention: %w", changefeed.ErrPermanent, err)
}

// physicalRange returns the bounds of the range that replied. They are unknown
// (errRangesChanged) until a second reply confirms r.seen.
func (r *feedRead) physicalRange() (changefeed.FeedRange, error) {
	switch {
	case r.req.Range.Contains(changefeed.FullRange()):
		return changefeed.FullRange(), nil // a reply for the full range comes from the only physical range
	case r.source == "":
		return changefeed.FeedRange{}, errRangeUnnamed
	case r.source == r.seen.id:
		r.physical.Store(r.physicalID(r.source), r.seen.bounds)
	}
	bounds, known := r.bounds(r.source)
	if !known {
		return bounds, errRangesChanged
	}
	return bounds, nil
}

// decode sets the items, from the body that the policy took or from the SDK's items.
func (r *feedRead) decode(read changefeed.FeedRange, page *changefeed.Page, items [][]byte) error {
	a := r.about
	g, err := r.newFilter(a, r.req.Range, read)
	if err != nil {
		return err
	}
	d := decoder{
		container: a.source.Container, keys: a.keys, filter: g, values: make([][]byte, len(a.keys.paths)),
		items: make([]changefeed.Item, 0, max(r.req.MaxItems, 16)), versions: r.versions,
	}
	if body := r.body; body != nil {
		page.Bytes = len(*body)
		page.Release = func() { recycle(body) }
		err = d.page(*body)
	}
	for i := 0; i < len(items) && err == nil; i++ {
		page.Bytes += len(items[i])
		c := jsonscan.NewCursor(items[i])
		err = d.document(&c, items[i])
	}
	page.Items = d.items
	if err != nil {
		return r.rememberDoubt(g, err)
	}
	page.Doubt = r.rememberDoubt(g, nil)
	return nil
}

// bounds returns the bounds of a physical range by its id, if they are known. They never
// become outdated, because splits and merges create ranges with new ids.
func (r *feedRead) bounds(id string) (bounds changefeed.FeedRange, known bool) {
	v, _ := r.physical.Load(r.physicalID(id))
	bounds, known = v.(changefeed.FeedRange)
	return bounds, known
}

// physicalID distinguishes the ranges of a container from those of one created again under
// its name, which have the same ids.
func (r *feedRead) physicalID(id string) string { return r.about.source.Container + "/" + id }

// sameContainer returns an error if a reply names another container. Requests name theirs by
// path, so a container created again under that name replies to them, and the range "0" exists
// there, too.
func sameContainer(replied, want string) error {
	if replied != "" && want != "" && replied != want {
		return fmt.Errorf("container %s replied instead of %s: %w", replied, want, changefeed.ErrRecreated)
	}
	return nil
}

// seenRange is a physical range that replied, with its bounds in a list made after that
// reply.
//
// The SDK names the range it read by id, but lists ranges without ids, from a cache that
// may change at any time. That cache only moves forward, and an id that is gone does not
// come back. Therefore, if the same range replies before and after the list was made, it
// was in the list, as the range that contains the requested one.
type seenRange struct {
	id     string
	bounds changefeed.FeedRange
}

// matchRange returns the only listed range that overlaps the requested one, for the id that
// replied.
func matchRange(id string, asked changefeed.FeedRange, listed []changefeed.FeedRange) seenRange {
	listed = slices.DeleteFunc(listed, func(r changefeed.FeedRange) bool { return !r.Overlaps(asked) })
	if len(listed) != 1 {
		return seenRange{} // the list is from another time
	}
	return seenRange{id: id, bounds: listed[0]}
}
