package relay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"feedbox/domain/fault"
)

// Lister lists the stored events of all keys. A store that keeps events may implement it.
type Lister interface {
	// Recent returns a page of events, the newest first. Limit is a guide: a page may have more
	// events, fewer, or none although there are older ones. An event is on at most one page of a
	// listing. Events that are committed while a caller reads the pages may be on none of them.
	//
	// A page reads a bounded part of the store, whatever the store contains. Faults: Invalid for a
	// continuation that is none, Throttled, Unavailable.
	Recent(ctx context.Context, q RecentQuery) (RecentPage, error)
}

// RecentQuery selects a page of events. The zero value of a field selects all.
type RecentQuery struct {
	From, Until  time.Time // of the commit, Until is exclusive
	ID           string    // of the event; a store without an index of ids ignores it
	Limit        int       // required
	Continuation string    // of the previous page
}

// RecentPage is a page of events.
type RecentPage struct {
	Events []RecentEvent
	// Continuation is "" after the last page. Back is the time to which this page goes back: all
	// newer events are on it or on earlier pages. It is zero after the last page of all events.
	Continuation string
	Back         time.Time
}

// RecentEvent is a listed event.
type RecentEvent struct {
	StoredEvent
	// Trouble is the reason for which the document cannot be sent; "" if it can. The message then
	// has the fields that are readable.
	Trouble string
}

// Windows lists events from a store that has an index by time but cannot return the newest first. It
// reads one period after the other, from the newest to the oldest. It cuts a period that has too many
// events, and takes longer periods where there are few. So a page needs few reads both for a burst and
// for an event in a month. Periods do not grow again within one that was cut: they would be cut again
// and again before a burst.
type Windows struct {
	// Least is the resolution of the store's times.
	Least time.Duration
	// Between returns the events of [from, until) in any order, after those of earlier calls with the
	// same period. Unless these are all, next is not empty. If there are more than most, it may return
	// none of them, but not for a period of length Least.
	Between func(ctx context.Context, from, until time.Time, most int, after string) (found []RecentEvent, next string, err error)
}

const (
	windowsOfPage = 40 // reads of one page; to find a burst of a second in a month takes 11 cuts and some 16 other reads
	firstWindow   = time.Minute
	windowGrowth  = 8
	windowCut     = 4
	// ahead is the greatest time by which the clock of a store may be ahead of this one.
	ahead = time.Minute
)

// window is the position of a listing: the end of the next period, its length, and the place in it.
type window struct {
	Until  int64  `json:"u"` // microseconds since 1970
	Length int64  `json:"l"`
	After  string `json:"a,omitempty"`
	Dense  int64  `json:"d,omitempty"` // the beginning of the last period that was cut
}

// Recent is the method of Lister at a time.
func (w Windows) Recent(ctx context.Context, now time.Time, q RecentQuery) (page RecentPage, err error) {
	now, least := now.Add(ahead), w.Least.Microseconds()
	at := window{Until: now.UnixMicro(), Length: (ahead + firstWindow).Microseconds()}
	if !q.Until.IsZero() && q.Until.Before(now) {
		at = window{Until: q.Until.UnixMicro(), Length: firstWindow.Microseconds()}
	}
	if err := Resume(q.Continuation, &at); err != nil {
		return page, err
	}
	first, most := max(0, q.From.UnixMicro()), now.Add(time.Hour).UnixMicro()
	if at.Until < 0 || at.Until > most || at.Length < 1 || at.Length > most || at.After != "" && at.Length > least {
		return page, errContinuation
	}
	if at.After == "" { // whole units of the store's time
		at.Until = (at.Until + least - 1) / least * least
	}
	for range windowsOfPage {
		at.Length = max(least, at.Length/least*least)
		from := max(first, at.Until-at.Length)
		found, next, err := w.Between(ctx, time.UnixMicro(from).UTC(), time.UnixMicro(at.Until).UTC(), q.Limit, at.After)
		if err != nil {
			return page, err
		}
		if next != "" && at.Length > least {
			at.Length, at.Dense = at.Length/windowCut, from
			continue
		}
		slices.SortStableFunc(found, func(a, b RecentEvent) int {
			return cmp.Or(b.StoredAt.Compare(a.StoredAt), cmp.Compare(b.Sequence, a.Sequence))
		})
		page.Events = append(page.Events, found...)
		if at.After = next; next == "" {
			at.Until, page.Back = from, time.UnixMicro(from).UTC()
			if len(found)*windowGrowth <= q.Limit && (at.Dense == 0 || from <= at.Dense) {
				at.Length = min(at.Length*windowGrowth, most)
			}
		}
		if at.Until <= first && next == "" {
			page.Back = q.From
			return page, nil
		}
		if len(page.Events) >= q.Limit {
			break
		}
	}
	page.Continuation = Continue(at)
	if page.Back.IsZero() {
		page.Back = time.UnixMicro(at.Until).UTC()
	}
	return page, nil
}

var errContinuation = fault.New(fault.Invalid, "invalid_continuation", "the continuation is not one of this listing; start from the newest events")

// Continue returns the continuation of a position, which it encodes as JSON.
func Continue(position any) string {
	text, _ := json.Marshal(position) // a struct of numbers and strings
	return base64.RawURLEncoding.EncodeToString(text)
}

// Resume decodes a continuation into position; "" leaves it unchanged.
func Resume(continuation string, position any) error {
	if continuation == "" {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(continuation)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields() // the continuation of another store
	if err != nil || decoder.Decode(position) != nil || decoder.More() {
		return errContinuation
	}
	return nil
}
