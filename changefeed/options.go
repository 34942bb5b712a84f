package changefeed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Options tune a processor. The zero value of every field is its documented default. A
// negative duration or count disables the limit where the field says so.
type Options struct {
	// Processor names the set of leases. All hosts of one deployment share it. Default
	// "changefeed". It must not contain a dot.
	Processor string
	// Purpose says what becomes of the documents. A processor with another purpose refuses to run on the
	// same leases, because each would skip what only the other one has handled. Default "".
	Purpose string
	// Host is this host's name in the leases. Give each host its own; two hosts with one
	// name still work and are reported (Observer.DuplicateHost). Default: the machine's
	// host name and eight random digits, because two processors may run on one machine. Siblings share it.
	Host string
	// LeasePrefixHost replaces the account host in lease ids, so that two names of one
	// account do not make two sets of leases. Default: the feed's.
	LeasePrefixHost string
	// Start is the start position if there are no leases. Default FromBeginning.
	Start Start
	// Scope limits the processor to some feed ranges, which must not overlap.
	// Default: the whole key space. Use another Processor name per scope.
	Scope []FeedRange

	// Siblings are the processors of this process that read other containers, and share the leases of
	// all with it. Default: none.
	Siblings *Siblings

	// Expiry is the lifetime of a lease without a write. When an owner is gone, other hosts
	// wait this long, on their own clocks. The owner stops trusting the lease a tenth
	// earlier (the margin), because clocks may run at different speeds. Default 20 s.
	Expiry time.Duration
	// Renew is the longest time between two writes of an owned lease. A checkpoint counts.
	// Default 2/5 of Expiry.
	Renew time.Duration
	// Acquire is the time between two listings of all leases. It is AcquireFast while hosts
	// join, leave or hand leases off. It is at least twice Expiry for a host that holds all
	// leases and would keep them if another host came, as with a single lease. A host also
	// notices Operator.Pause with a listing. Default Expiry/4.
	Acquire time.Duration
	// AcquireFast is Acquire for a minute after a change. Default 500 ms, at most Acquire. In a
	// large fleet it is a microsecond for each lease and host, at most Acquire, because the hosts
	// together would otherwise list more than a million records a second.
	AcquireFast time.Duration

	// MaxItems bounds a page. Default 100; a negative value leaves it to the service.
	MaxItems int
	// PollMin is the pause after an empty read, in a range that had a change within a
	// minute, or a hundredth of the time since that change if that is more, or a tenth of the
	// time since the start if no change was ever read. A range that is caught up is not read
	// while all its lanes are busy, for at most PollMax. Default 500 ms.
	PollMin time.Duration
	// PollBusy is the shortest pause after an empty read, in a range whose changes come
	// faster than PollMin. Such a range is read about once per change. Default PollMin.
	PollBusy time.Duration
	// PollMax is the longest pause in an idle range; pauses grow towards it by
	// half. Default 20 s, at least PollMin.
	PollMax time.Duration
	// PollRate is the number of reads without a change that this host makes in a second, at most,
	// apart from those within PollMin of a change. With more ranges than that allows, each waits
	// for its turn, at most PollMax. Otherwise a
	// host that acquires hundreds of ranges would read all of them every PollMin, which can take so
	// much of its processor that it renews leases too late. Default 1000.
	PollRate int

	// Lanes is the number of concurrent handler calls within one range, plus one for
	// retries. Default 1. Items with the same key never run at once and never overtake each
	// other.
	Lanes int
	// Key returns the ordering key of a document: a part of raw, or nil. Default: the
	// partition key from the feed. See Field. Change it only while no lease has held keys,
	// because a key is recognized by it after a restart.
	Key func(raw json.RawMessage) []byte
	// ReadTimeout is the deadline of each request to the feed. It must be longer than the time
	// for which a feed waits for changes. A range without a reply for one and a half times as
	// long is reported (Observer.RangeUnread), and its lease is released, so that another host
	// can try. Default 30 s.
	ReadTimeout time.Duration
	// ReadAheadItems and ReadAheadBytes bound the memory of one range, held documents
	// included. The page that crosses a bound is the last one read. Held documents after the
	// first one of their key have at most half of it. At most 100 × ReadAheadItems changes
	// are handled beyond those that the lease records as done. Defaults 10 × MaxItems and
	// 8 MiB.
	ReadAheadItems, ReadAheadBytes int
	// HandlerTimeout ends the context of a handler call. Default 5 min; negative disables
	// it.
	HandlerTimeout time.Duration

	// CheckpointEvery is the shortest time between two checkpoint writes of one range,
	// unless 10,000 items were handled since. What is done ahead of a held key is written
	// as often. A crash redelivers the changes handled after the last write. Default 1 s; negative writes after each page.
	CheckpointEvery time.Duration

	// RetryMin and RetryMax bound the pauses between attempts to read or handle. Defaults
	// 100 ms and 30 s.
	RetryMin, RetryMax time.Duration
	// MaxAttempts is the number of refusals of a document (see Refuse) before Poison
	// applies. Default 5; negative retries forever. Waiting uses none.
	MaxAttempts int
	// Poison is the policy for a document that was refused MaxAttempts times. Default:
	// PoisonDeadLetter if there is a DeadLetter, else PoisonStop.
	Poison PoisonPolicy
	// DeadLetter stores a document that the handler cannot handle. It is called until it
	// returns nil, and may be called again for the same document.
	DeadLetter func(ctx context.Context, letter DeadLetter) error
	// WaitLimit is how long a document may wait while this host handles others. Then it
	// goes to DeadLetter with Waiting set, so that the checkpoint can pass it; earlier if
	// held documents fill the range's memory. Default: no limit. It needs PoisonDeadLetter.
	WaitLimit time.Duration
	// StuckAfter is how long a range fails before Observer.RangeStuck is called.
	// Default 1 min.
	StuckAfter time.Duration

	// DrainTimeout bounds the drain after Run's ctx has ended. If other hosts can take the
	// leases, this host first announces that it leaves and continues to work until all have
	// noticed: a bit more than Acquire, at most 3/5 of DrainTimeout. A lease is then
	// unowned for about AcquireFast. The rest of the time is for handlers to end. A
	// hand-off also waits this long for the handlers of the lease. Default 10 s; negative
	// announces nothing and ends handlers at once.
	DrainTimeout time.Duration

	// Observer receives events. Default: none.
	Observer *Observer
	// Logger receives the log of LogObserver. Default: slog.Default() if there is no
	// Observer, else none.
	Logger *slog.Logger
	// Now is the wall clock of document timestamps and of lag in seconds. It decides one
	// thing: an owner that finds it nine tenths of Expiry or more ahead of its last write
	// renews the lease before it delivers. This detects a suspension of the machine, which
	// stops Clock. Default time.Now.
	Now func() time.Time
	// Clock measures leases, pauses and timeouts. Default: the process's own. A simulation
	// may pass another.
	Clock Clock
}

// PoisonPolicy is the treatment of a document that failed too often.
type PoisonPolicy string

const (
	// PoisonStop stops the range until Operator.Retry. The lease records the reason.
	PoisonStop PoisonPolicy = "stop"
	// PoisonSkip continues without the document and reports it.
	PoisonSkip PoisonPolicy = "skip"
	// PoisonDeadLetter passes the document to Options.DeadLetter.
	PoisonDeadLetter PoisonPolicy = "dead-letter"
)

// DeadLetter is a document that could not be handled. It is a copy, because the memory of its
// page is reused.
type DeadLetter struct {
	LeaseRef
	ID       string // the document's id, if it has one
	Key      []byte
	LSN      int64
	Changed  time.Time
	Attempts int
	// Waiting means that the document was not refused but waited longer than
	// Options.WaitLimit.
	Waiting bool
	Err     error
	Raw     json.RawMessage
}

// resolve fills in the defaults and reports all faults at once.
func (o *Options) resolve(h Handler) (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Processor = cmp.Or(c.Processor, "changefeed")
	c.Expiry = cmp.Or(c.Expiry, 20*time.Second)
	c.Renew = cmp.Or(c.Renew, c.Expiry*2/5)
	c.Acquire = cmp.Or(c.Acquire, c.Expiry/4)
	c.AcquireFast = cmp.Or(c.AcquireFast, min(500*time.Millisecond, c.Acquire))
	c.MaxItems = cmp.Or(c.MaxItems, 100)
	c.PollMin = cmp.Or(c.PollMin, 500*time.Millisecond)
	c.PollBusy = cmp.Or(c.PollBusy, c.PollMin)
	c.PollMax = cmp.Or(c.PollMax, max(20*time.Second, c.PollMin))
	c.PollRate = cmp.Or(c.PollRate, 1000)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, defaultReadTimeout)
	c.Lanes = cmp.Or(c.Lanes, 1)
	c.ReadAheadItems = cmp.Or(c.ReadAheadItems, 10*max(c.MaxItems, 100))
	c.ReadAheadBytes = cmp.Or(c.ReadAheadBytes, 8<<20)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 5*time.Minute)
	c.CheckpointEvery = cmp.Or(c.CheckpointEvery, time.Second)
	c.RetryMin = cmp.Or(c.RetryMin, 100*time.Millisecond)
	c.RetryMax = cmp.Or(c.RetryMax, max(30*time.Second, c.RetryMin))
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 5)
	c.StuckAfter = cmp.Or(c.StuckAfter, time.Minute)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 10*time.Second)
	if c.Poison == "" {
		c.Poison = PoisonStop
		if c.DeadLetter != nil {
			c.Poison = PoisonDeadLetter
		}
	}
	if c.Observer == nil && c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Logger != nil {
		c.Observer = JoinObservers(c.Observer, LogObserver(c.Logger))
	}
	c.Clock = cmp.Or(c.Clock, Clock(systemClock{}))
	if c.Now == nil {
		c.Now = time.Now
	}
	if len(c.Scope) == 0 {
		c.Scope = []FeedRange{FullRange()}
	}
	return c, errors.Join(c.faults(h)...)
}

const defaultReadTimeout = 30 * time.Second

// margin is how long before Expiry an owner stops trusting its lease.
func (o *Options) margin() time.Duration { return o.Expiry / 10 }

// faults lists the faults of resolved options.
func (o *Options) faults(h Handler) []error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("options: "+format, args...))
		}
	}
	_, manual := h.(manualHandler)
	fault(strings.Contains(o.Processor, "."), "Processor %q must not contain a dot: lease ids would be ambiguous", o.Processor)
	fault(strings.Contains(o.Host, "/"), "Host %q must not contain a slash", o.Host)
	fault(strings.ContainsAny(o.Processor+o.LeasePrefixHost+o.Host, `\?#`), `Processor, Host and LeasePrefixHost must not contain \ ? or #, which record ids cannot contain`)
	fault(strings.Contains(o.Processor+o.LeasePrefixHost, "/"), "Processor and LeasePrefixHost must not contain a slash")
	fault(o.Expiry <= 0, "Expiry %s must be positive", o.Expiry)
	// 12/10, because a jittered renewal is up to a fifth late.
	fault(o.Renew <= 0 || o.Renew*12/10 >= o.Expiry-o.margin(), "Renew %s must leave time for a retry within nine tenths of Expiry, %s", o.Renew, o.Expiry-o.margin())
	fault(o.AcquireFast <= 0 || o.AcquireFast > o.Acquire, "AcquireFast %s must be positive and at most Acquire %s", o.AcquireFast, o.Acquire)
	fault(o.PollMin <= 0 || o.PollMax < o.PollMin, "PollMin %s must be positive and at most PollMax %s", o.PollMin, o.PollMax)
	fault(o.PollBusy <= 0 || o.PollBusy > o.PollMin, "PollBusy %s must be positive and at most PollMin %s", o.PollBusy, o.PollMin)
	fault(o.PollRate <= 0, "PollRate %d must be positive", o.PollRate)
	fault(o.ReadTimeout <= 0, "ReadTimeout %s must be positive", o.ReadTimeout)
	fault(o.Lanes < 1, "Lanes %d must be at least 1", o.Lanes)
	fault(manual && o.Lanes > 1, "Lanes %d with a manual handler: a page's checkpoint would cover unfinished items of other lanes", o.Lanes)
	fault(o.ReadAheadItems < 1 || o.ReadAheadBytes < 1, "ReadAheadItems and ReadAheadBytes must be positive")
	fault(o.RetryMin <= 0 || o.RetryMax < o.RetryMin, "RetryMin %s must be positive and at most RetryMax %s", o.RetryMin, o.RetryMax)
	fault(o.Poison == PoisonDeadLetter && o.DeadLetter == nil, "Poison is dead-letter but there is no DeadLetter")
	fault(o.WaitLimit < 0, "WaitLimit %s must not be negative", o.WaitLimit)
	fault(o.WaitLimit > 0 && o.Poison != PoisonDeadLetter, "WaitLimit %s without DeadLetter: documents that waited too long have no destination", o.WaitLimit)
	fault(!slices.Contains([]PoisonPolicy{PoisonStop, PoisonSkip, PoisonDeadLetter}, o.Poison), "Poison %q is unknown", o.Poison)
	for i, r := range o.Scope {
		if err := r.validate(); err != nil {
			errs = append(errs, fmt.Errorf("options: Scope: %w", err))
		}
		for _, other := range o.Scope[:i] {
			fault(r.Overlaps(other), "Scope: %s overlaps %s", r, other)
		}
	}
	if o.Start.err != nil {
		errs = append(errs, fmt.Errorf("options: %w", o.Start.err))
	}
	return errs
}
