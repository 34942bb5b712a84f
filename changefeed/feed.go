package changefeed

import (
	"context"
	"encoding/json"
	"time"

	"feedbox/changefeed/internal/jsonscan"
)

// Feed reads the change feed of one container. Implementations are safe for concurrent use,
// because every owned range reads on its own goroutine.
//
// The processor treats every error as transient, except the typed ones of this package: it
// backs off and reads again, keeping the lease. Every call has a deadline
// (Options.ReadTimeout), and must return soon after its context has ended.
type Feed interface {
	// Source identifies the container. Lease ids contain it. It asks the service each time,
	// because a container can be deleted and created again under its name.
	Source(ctx context.Context) (Source, error)
	// Ranges lists the physical ranges, which tile the key space. The processor never
	// infers a split from it alone, because the list may be out of date.
	Ranges(ctx context.Context) ([]FeedRange, error)
	// Now returns a continuation after every change made before the call and before every
	// change made after it returned.
	Now(ctx context.Context, r FeedRange) (continuation string, err error)
	// Read returns the page that follows a continuation. It returns *SplitError when
	// several physical ranges serve the range now. It must not return a document whose key
	// is outside the range, must keep the changes of one transaction to one key on one page,
	// and orders items by LSN. A page that ends within a transaction has Page.Cut set. It
	// returns ErrRecreated if the container is not the one of ReadRequest.Container.
	Read(ctx context.Context, req ReadRequest) (*Page, error)
}

// Placer is a Feed that can compute the place of a key. Processor.Own needs it.
type Placer interface {
	// Place returns the effective partition key of a partition key with one string
	// value. It is safe for concurrent use, and fails before Source has succeeded.
	Place(key string) (string, error)
}

// Sparse is a Feed whose LSNs do not count transactions, for example because they are
// times. Any number may lie between two of them. The lag of such a feed is reported as at
// most one transaction.
type Sparse interface{ LSNsHaveGaps() }

// transactions returns the number of transactions in n LSNs of a feed.
func transactions(feed Feed, n int64) int64 {
	if timed, ok := feed.(timedFeed); ok {
		feed = timed.Feed
	}
	if _, sparse := feed.(Sparse); sparse {
		return min(n, 1)
	}
	return n
}

// Source names the container a feed reads. Its parts become the lease prefix
// {processor}{Host}_{Database}_{Container}, as the .NET SDK's processor has it.
type Source struct {
	Host      string // account host without port
	Database  string // database resource id (_rid)
	Container string // container resource id (_rid)
}

// ReadRequest asks for one page.
type ReadRequest struct {
	Range FeedRange
	// Container is the Source.Container that Continuation belongs to; empty is any. A position
	// has no meaning in a container that was created again.
	Container string
	// Continuation is the position to read after; empty is the start.
	Continuation string
	// Since, with an empty Continuation, starts at changes made at or after that
	// time; zero is the beginning of the container.
	Since time.Time
	// MaxItems bounds the page; 0 leaves it to the service. A page may exceed it
	// rather than separate the changes of one transaction.
	MaxItems int
}

// Page is one reply of the feed.
type Page struct {
	Items []Item
	// Continuation is the position after this page. It may move although no item was
	// returned.
	Continuation string
	// Cut means that the next page may continue the transaction of the last item, with changes
	// to other keys. It is for transactions that are too large for one page.
	Cut bool
	// CaughtUp means that the service had nothing after the request's position.
	CaughtUp bool
	// EndLSN is the highest LSN the service had in this range when it replied; 0 if
	// unknown. It gives the lag without another read.
	EndLSN int64
	// Withheld is the number of committed transactions that the feed must not return yet, because
	// an open transaction may still commit changes before them; WithheldSince is the commit time
	// of the oldest. A feed that cannot withhold changes leaves them zero.
	Withheld      int64
	WithheldSince time.Time
	// Term names the physical range and, after a colon, the term of its service, which changes
	// with a failover. "" if unknown. If the feed ends before a position of an earlier term of
	// the same physical range, it has lost changes for good.
	Term string
	// RequestCharge in request units.
	RequestCharge float64
	SessionToken  string
	// Bytes is the size of the reply's body.
	Bytes int
	// Doubt, if set, means that an assumption of the feed proved wrong. Nothing is missing
	// on this page. It is passed to Observer.LeaseError.
	Doubt error
	// Release, if set, is called once the items are not used any more. The feed may then
	// reuse their memory.
	Release func()
}

// Item is one changed document.
type Item struct {
	// Raw is the document as the service sent it. It is valid until the handler returns,
	// because the page's memory is then reused: copy data that must live longer.
	Raw json.RawMessage
	// Key orders: items with the same key reach the handler one after another, in feed
	// order. It is the result of Options.Key, or else the partition key's raw JSON from the
	// feed. Valid as long as Raw.
	Key []byte
	// LSN is the logical sequence number of the transaction that made the change.
	LSN int64
	// Timestamp is the service's time of the change, in seconds since 1970 (_ts).
	Timestamp int64
}

// Time returns Timestamp as a time.Time.
func (i *Item) Time() time.Time { return time.Unix(i.Timestamp, 0) }

// Field returns a function for Options.Key that finds the raw JSON of one top-level member
// without decoding the document.
func Field(name string) func(raw json.RawMessage) []byte {
	return func(raw json.RawMessage) []byte { return jsonscan.Member(raw, name) }
}

// LeaseStore keeps the processor's records: leases, the marker that the store is
// initialized, heartbeats of idle hosts. It does not interpret their content. Package
// leasetest is the conformance suite.
//
// All guarantees of the processor depend on two of its properties:
//
//   - Create is atomic: of any number of callers with one id, one succeeds.
//   - Replace and Delete are atomic compare-and-swap: they take effect if and
//     only if the record's ETag is the given one. Every change gives the record
//     an ETag it never had before, even if the bytes are the same.
//
// No guarantee depends on fresh reads: List and Read may return old versions, because every
// write that follows a read carries the ETag of that read.
//
// After an error other than ErrExists, ErrNotFound or ErrETagMismatch the write may or may
// not have taken effect. A request must return when its ctx ends: the processor gives a listing
// half of Options.Expiry, every other request a quarter, and an Operator 30 s. Implementations
// are safe for concurrent use.
type LeaseStore interface {
	// List returns the records whose id starts with prefix, in any order.
	List(ctx context.Context, prefix string) ([]Record, error)
	// Read returns one record or ErrNotFound.
	Read(ctx context.Context, id string) (Record, error)
	// Create stores a new record and returns its ETag, or ErrExists.
	Create(ctx context.Context, record Record) (etag string, err error)
	// Replace stores record.Body if record.ETag is current and returns the new ETag.
	// Otherwise it returns ErrETagMismatch, or ErrNotFound.
	Replace(ctx context.Context, record Record) (etag string, err error)
	// Delete removes the record if etag is current. Otherwise it returns ErrETagMismatch,
	// or ErrNotFound.
	Delete(ctx context.Context, id, etag string) error
}

// Record is one stored document.
type Record struct {
	ID string
	// ETag is the store's version tag, opaque, never empty once stored.
	ETag string
	// Body is a JSON object with the member "id". A store may add members whose names begin
	// with an underscore. It keeps all other members as they are.
	Body json.RawMessage
	// Term is set by List and Read of a store that is kept by the server of the feed. It names the
	// server and its term as Page.Term does. The ETag is then valid in this term only: a server
	// that failed over may have lost the position that a writer read before. "" otherwise.
	Term string
	// Doubt, if set by List, is a fault of the record that an operator must mend, such as a
	// second record with its id. It is passed to Observer.LeaseError.
	Doubt error
}
