package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/process/config"
)

// FindingStatus is the result of one examination.
type FindingStatus string

// The results.
const (
	FindingOK      FindingStatus = "ok"
	FindingWarning FindingStatus = "warning" // works, but needs attention
	FindingFailed  FindingStatus = "failed"  // the process cannot work
	FindingUnknown FindingStatus = "unknown" // could not be examined
)

// Finding is a result of one examination.
type Finding struct {
	Check  string
	Status FindingStatus
	Detail string
	Next   string // what to do about it
}

// Fine returns a finding of status ok.
func Fine(check, format string, args ...any) Finding {
	return Finding{Check: check, Status: FindingOK, Detail: fmt.Sprintf(format, args...)}
}

// Is returns the finding with another status and the advice for it.
func (f Finding) Is(status FindingStatus, next string) Finding {
	f.Status, f.Next = status, next
	return f
}

// DoctorOptions configure Diagnose. Zero values are the defaults.
type DoctorOptions struct {
	// Process is the process whose environment is examined. Default ProcessRelay.
	Process Process
	// Management is the base URL of the broker's management API. Default: the usual address
	// of the broker. Emulators use another.
	Management string
	// Each bounds one examination. Default 15 s.
	Each time.Duration
	// Found is called with each finding, in order. Required.
	Found func(Finding)
}

// Unexamined reports checks as unknown, because they depend on another one that failed. They are shown,
// because a reader of the findings would treat a missing check as a healthy one.
func Unexamined(failed string, checks ...string) Examination {
	return func(context.Context) (found []Finding) {
		for _, check := range checks {
			found = append(found, Fine(check, "not examined, because %s failed", failed).Is(FindingUnknown, "correct "+failed+" first"))
		}
		return found
	}
}

// Diagnose examines the environment of a process, reading only. It opens and closes a link to
// the broker but sends nothing. Checks that depend on a failed one are unknown; the others are
// made.
func (o *Operator) Diagnose(ctx context.Context, d DoctorOptions) {
	each := cmp.Or(d.Each, 15*time.Second)
	step := func(examine Examination) (ok bool) {
		bounded, cancel := context.WithTimeout(ctx, each)
		defer cancel()
		ok = true
		for _, f := range examine(bounded) {
			d.Found(f)
			ok = ok && f.Status != FindingFailed
		}
		return ok
	}
	process := cmp.Or(d.Process, ProcessRelay)
	unusable := Unusable{}
	maps.Copy(unusable, o.store.Doctor.Examine(process, step))
	if process == ProcessAPI {
		return // the API does not use the broker
	}
	step(func(ctx context.Context) []Finding { return o.examineAccess(ctx, unusable) })
	use := func(examine Examination, check string, parts ...Part) {
		if failed := unusable.Of(parts...); failed != "" {
			examine = Unexamined(failed, check)
		}
		step(examine)
	}
	// The ids of the leases have the name of the container, which the feed knows.
	use(func(ctx context.Context) []Finding { return o.examineLeases(ctx, d.Management) }, "leases", PartFeed, PartLeases)
	use(o.examineOwner, "owner of parked events", PartParked)
	use(o.examineLeaseSets, "other lease sets", PartFeed, PartLeases)
	if o.store.LeasesOf != nil {
		use(o.examineFormer, formerCheck, PartParked)
	}
	use(o.examineParked, "parked", PartParked)
	if o.broker != nil {
		o.broker.Doctor.Examine(step, d.Management, o.resendSpan())
	}
}

// resendSpan is the longest time after which a takeover may repeat a send: the event was sent
// while another key waited, then the lease expired and the next owner acquired it.
func (o *Operator) resendSpan() time.Duration {
	return o.cfg.Lease.Expiry + o.cfg.Lease.Acquire + o.cfg.DrainTimeout + config.WaitLimit
}

// examineAccess reads each part of the store as a relay does, unless it is unusable already. It adds the
// parts that it could not read.
func (o *Operator) examineAccess(ctx context.Context, unusable Unusable) []Finding {
	var found []Finding
	for _, a := range []struct {
		check string
		part  Part
		needs []Part
		try   func(ctx context.Context) error
	}{
		{"read the change feed", PartFeed, []Part{PartFeed}, o.readFeed},
		{"read the leases", PartLeases, []Part{PartFeed, PartLeases}, func(ctx context.Context) error {
			_, err := o.Leases.Paused(ctx)
			return err
		}},
		{"read parked events", PartParked, []Part{PartParked}, func(ctx context.Context) error {
			_, err := o.Parked.Intents(ctx)
			return err
		}},
	} {
		if failed := unusable.Of(a.needs...); failed != "" {
			found = append(found, Unexamined(failed, a.check)(ctx)...)
			continue
		}
		f := Fine(a.check, "allowed")
		if err := a.try(ctx); err != nil {
			f = o.failed(ctx, a.check, err, a.part)
			unusable[a.part] = a.check
		}
		found = append(found, f)
	}
	return found
}

// failed is the finding of a failed use of a part of the store.
func (o *Operator) failed(ctx context.Context, check string, err error, part Part) Finding {
	return o.described(check, err).Is(FindingFailed, o.store.Doctor.Advise(ctx, err, part))
}

// described is the finding of an error of the store, without status and advice.
func (o *Operator) described(check string, err error) Finding {
	return Fine(check, "%s", o.store.Doctor.Describe(err))
}

// readFeed reads one document of each physical range.
func (o *Operator) readFeed(ctx context.Context) error {
	ranges, err := o.store.Feed.Ranges(ctx)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		err := o.readRange(ctx, r)
		if _, split := errors.AsType[*changefeed.SplitError](err); err != nil && !split { // split after Ranges returned
			return err
		}
	}
	return nil
}

func (o *Operator) readRange(ctx context.Context, r changefeed.FeedRange) error {
	if o.RequireAnyStart() != nil {
		_, err := o.store.Feed.Now(ctx, r)
		return err
	}
	page, err := o.store.Feed.Read(ctx, changefeed.ReadRequest{Range: r, MaxItems: 1})
	if err == nil && page.Release != nil {
		page.Release()
	}
	return err
}

func (o *Operator) examineParked(ctx context.Context) []Finding {
	gates, err := o.Parked.Gates(ctx)
	if err != nil {
		return []Finding{o.failed(ctx, "parked", err, PartParked)}
	}
	if len(gates) == 0 {
		return append([]Finding{Fine("parked", "none")}, o.examineConsumerKeys(ctx)...)
	}
	var events int64
	for _, g := range gates {
		events += g.Events
	}
	return append([]Finding{Fine("parked", "%d keys with %d events", len(gates), events).Is(FindingWarning, o.cfg.Command("feedbox parked ls"))}, o.examineConsumerKeys(ctx)...)
}

// examineConsumerKeys finds parked keys of consumers. It reports nothing if there are none.
func (o *Operator) examineConsumerKeys(ctx context.Context) []Finding {
	const check, list = "parked by consumers", "feedbox parked ls --consumer "
	consumers, err := o.ConsumerKeys(ctx)
	if err != nil {
		return []Finding{o.described(check, err).Is(FindingUnknown, o.cfg.Command(list+"NAME"))}
	}
	if len(consumers) == 0 {
		return nil
	}
	keys, names := 0, make([]string, len(consumers))
	for i, c := range consumers {
		keys, names[i] = keys+len(c.Gates), c.Consumer
	}
	return []Finding{Fine(check, "%d keys, of %s", keys, strings.Join(names, ", ")).Is(FindingWarning, o.cfg.Command(list+names[0]))}
}

// OneLine returns the text of err without line breaks.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// skewWarning is the offset of clocks from which ages are misleading.
const skewWarning = 5 * time.Second

// Clock compares this machine's clock with that of whose. next is the advice if ages mislead.
func Clock(ahead time.Duration, whose, next string) Finding {
	f := Fine("clock", "this machine's is %s off the %s's", ahead.Abs().Round(time.Second), whose)
	if ahead.Abs() > skewWarning {
		f = f.Is(FindingWarning, next)
	}
	return f
}

// LookUp resolves a host. variable names the setting that contains it.
func LookUp(check, host, variable string) Examination {
	return func(ctx context.Context) []Finding {
		if net.ParseIP(host) != nil {
			return []Finding{Fine(check, "%s is an address, nothing to look up", host)}
		}
		addresses, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			return []Finding{Fine(check, "%v", err).Is(FindingFailed, "check "+variable+" and the network's DNS; with a private endpoint, that its private DNS zone is linked to this network")}
		}
		return []Finding{Fine(check, "%s is %s", host, strings.Join(addresses, ", "))}
	}
}
