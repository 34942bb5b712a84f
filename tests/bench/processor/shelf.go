package processor

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// body is 512 bytes of a document's data.
var body = strings.Repeat("abcdefghijklmnop", 32)

// shelf is a feed with prepared pages per range. The cost of a read does not depend on the
// number of ranges, unlike in a container that searches one log.
type shelf struct {
	ranges []changefeed.FeedRange
	items  map[changefeed.FeedRange][]changefeed.Item
}

// newShelf holds n documents of 512 bytes of data and 10,000 keys.
func newShelf(ctx context.Context, ranges, n int) (*shelf, error) {
	bounds, err := memfeed.New(&memfeed.Options{Ranges: ranges}).Ranges(ctx)
	if err != nil {
		return nil, err
	}
	s := &shelf{ranges: bounds, items: map[changefeed.FeedRange][]changefeed.Item{}}
	of := map[string]changefeed.FeedRange{}
	for i := range n {
		key := fmt.Sprintf("key-%d", i%10_000)
		r, known := of[key]
		for _, candidate := range bounds {
			if !known && candidate.Has(memfeed.EPK(key)) {
				r, of[key] = candidate, candidate
				break
			}
		}
		raw, err := json.Marshal(map[string]any{"id": strconv.Itoa(i), "partitionKey": key, "data": body})
		if err != nil {
			return nil, err
		}
		lsn := int64(len(s.items[r]) + 1)
		s.items[r] = append(s.items[r], changefeed.Item{Raw: raw, Key: []byte(strconv.Quote(key)), LSN: lsn, Timestamp: 1})
	}
	return s, nil
}

func (s *shelf) Source(context.Context) (changefeed.Source, error) {
	return changefeed.Source{Host: "shelf", Database: "db", Container: "coll"}, nil
}

func (s *shelf) Ranges(context.Context) ([]changefeed.FeedRange, error) { return s.ranges, nil }

func (s *shelf) Now(_ context.Context, r changefeed.FeedRange) (string, error) {
	return strconv.Quote(strconv.Itoa(len(s.items[r]))), nil
}

func (s *shelf) Read(_ context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	after := 0
	if req.Continuation != "" {
		text, err := strconv.Unquote(req.Continuation)
		if err != nil {
			return nil, err
		}
		if after, err = strconv.Atoi(text); err != nil {
			return nil, err
		}
	}
	all := s.items[req.Range]
	to := min(len(all), after+req.MaxItems)
	// A copy: the processor owns a page's items.
	read := &changefeed.Page{Items: append([]changefeed.Item(nil), all[after:to]...), EndLSN: int64(len(all)), CaughtUp: after == to, RequestCharge: 1}
	read.Continuation = strconv.Quote(strconv.Itoa(to))
	for i := range read.Items {
		read.Bytes += len(read.Items[i].Raw)
	}
	return read, nil
}
