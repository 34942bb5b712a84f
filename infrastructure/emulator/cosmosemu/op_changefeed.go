package cosmosemu

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// maxFeedBytes limits a page of the change feed. It is the service's limit of 4 MB for a
// response.
const maxFeedBytes = 4 << 20

// The modes of the change feed, and the wire format whose entries contain metadata.
const (
	feedLatest   = "Incremental Feed"
	feedVersions = "Full-Fidelity Feed"
	feedFormat   = "2021-09-15"
)

// readChangeFeed answers GET .../docs with the A-IM header and returns a page of the change
// feed. The position is a quoted LSN of the range: the ETag of every page, including empty
// pages (304), and the If-None-Match of the next request. All changes of one transaction are on
// one page.
//
//   - Supports: the modes latest version and all versions and deletes; a start at the
//     beginning, at If-Modified-Since or from now (If-None-Match *); a range id, a partition
//     key or a window of effective partition keys.
//   - Refuses: all versions if the account or the container does not enable them, from the
//     beginning or from a time, or before the retention (400), several ranges at once (400), a range that was split or
//     merged (410), a session token that is ahead (404/1002).
//   - Source: REST reference, List Documents; cosmos_change_feed_request_options.go of
//     azcosmos; .NET's GatewayTests.
func readChangeFeed(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	q, err := feedQuery(x.header, c)
	if err != nil {
		return nil, err
	}
	if err := feedMode(x.header, c, q); err != nil {
		return nil, err
	}
	rng, err := c.Topology().Find(q.Range)
	if err != nil {
		return nil, err
	}
	if err := x.admit(c, *rng); err != nil {
		return nil, err
	}
	if err := x.checkSession(c, rng); err != nil {
		return nil, err
	}
	position := first(x.header, headerIfNoneMatch)
	switch position {
	case "":
		q.Since, err = parseSince(first(x.header, headerIfModifiedSince))
	case "*":
		return feedNotModified(rng, rng.LSN(), rng.LSN()), nil
	default:
		q.After, err = parsePosition(position)
	}
	if err != nil {
		return nil, err
	}
	q.At = x.moment(c)
	defer q.At.Release()
	head := fmt.Appendf(x.buffer, `{"_rid":%q,"Documents":[`, c.RID)
	page, err := c.Feed(head, *q)
	if err != nil {
		return nil, err
	}
	if page.Count == 0 {
		return feedNotModified(rng, page.LSN, page.End), nil
	}
	body := page.Documents
	body = append(body, `],"_count":`...)
	body = append(strconv.AppendInt(body, int64(page.Count), 10), '}')
	a := ok(http.StatusOK, body, feedCharge(page.Count, len(body)))
	a.etag, a.session, a.count = feedETag(page.LSN), rangeToken(rng, page.End), page.Count
	return a, nil
}

// feedMode reads the mode and the wire format. All versions are available only if the
// container keeps them, and only from now or from a position.
func feedMode(h http.Header, c *store.Container, q *store.FeedQuery) error {
	format := first(h, headerFeedFormat)
	if format != "" && format != feedFormat {
		return refuse(http.StatusBadRequest, "The change feed wire format version %q is not supported: only %s", format, feedFormat)
	}
	mode := first(h, headerAIM)
	switch {
	case strings.EqualFold(mode, feedLatest):
		q.Metadata = format != ""
		return nil
	case !strings.EqualFold(mode, feedVersions):
		return refuse(http.StatusBadRequest, "The change feed mode %q is unknown: it must be %s or %s", mode, feedLatest, feedVersions)
	case format == "":
		return refuse(http.StatusBadRequest, "The change feed mode %s needs the wire format version %s", mode, feedFormat)
	case c.Definition().Retention == 0:
		return refuse(http.StatusBadRequest, "Change Feed 'All Versions and Deletes' mode must be enabled: on the service by continuous backup of the account, in this emulator by Options.VersionRetention or Options.ContainerRetention")
	case first(h, headerIfNoneMatch) == "":
		return refuse(http.StatusBadRequest, "The change feed mode %s starts from now (If-None-Match *) or from a continuation, not from the beginning or a time", mode)
	}
	q.Versions = true
	return nil
}

// feedNotModified is the answer without changes. A position ahead of the end, as after a lost
// suffix, is returned as it is, but the session token has the last LSN of the range.
func feedNotModified(rng *store.Range, position, last uint64) *reply {
	a := ok(http.StatusNotModified, nil, 1)
	a.etag, a.session, a.count = feedETag(position), rangeToken(rng, last), 0
	return a
}

func feedETag(lsn uint64) string { return `"` + strconv.FormatUint(lsn, 10) + `"` }

// feedQuery reads the part of the container that the feed must cover: a range id, a
// partition key, a window of effective partition keys.
func feedQuery(h http.Header, c *store.Container) (*store.FeedQuery, error) {
	limit, err := maxItemCount(h)
	if err != nil {
		return nil, err
	}
	q := &store.FeedQuery{Range: first(h, headerRangeID), MaxItems: limit, MaxBytes: maxFeedBytes}
	if _, id, found := strings.Cut(q.Range, ","); found { // "<container rid>,<id>"
		q.Range = id
	}
	key, err := keyHeader(h)
	if err != nil {
		return nil, err
	}
	def := c.Definition()
	if key != nil {
		if len(key) > len(def.Paths) {
			return nil, keyMismatch(key, def)
		}
		q.Part = store.NewPartition(key, def.Hash())
	}
	if q.Window, err = keyWindow(h); err != nil {
		return nil, err
	}
	if q.Range != "" {
		return q, nil
	}
	t := c.Topology()
	switch {
	case q.Part != nil:
		rng, prefix := t.Locate(q.Part.EPK), epk.Point(q.Part.EPK)
		if len(key) < len(def.Paths) && bytes.Compare(prefix.Max, rng.Max) > 0 {
			return nil, refuse(http.StatusBadRequest, "The partition key %v has %d of %d values and is in several physical partitions: the change feed needs a partition key range id", key, len(key), len(def.Paths))
		}
		q.Range = rng.ID
	case len(t.Ranges) == 1:
		q.Range = t.Ranges[0].ID
	default:
		return nil, refuse(http.StatusBadRequest, "The change feed of a container with %d physical partitions needs a partition key range id or a partition key", len(t.Ranges))
	}
	return q, nil
}

// parsePosition reads an LSN from an ETag.
func parsePosition(etag string) (uint64, error) {
	lsn, err := strconv.ParseUint(strings.Trim(strings.TrimPrefix(etag, "W/"), `"`), 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "The change feed position %s is not one of this container: expected a quoted LSN", etag)
	}
	return lsn, nil
}

// parseSince reads If-Modified-Since. azcosmos writes the zone as UTC
// (cosmos_change_feed_request_options.go), other SDKs write it as GMT.
func parseSince(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC1123, http.TimeFormat, time.RFC3339Nano} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, refuse(http.StatusBadRequest, "If-Modified-Since is %q, which is not a time of the form %q", text, http.TimeFormat)
}
