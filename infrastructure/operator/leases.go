package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/cosmos"
)

// examineLeases looks at who owns what, and how old the oldest unsent event is.
func (o *Operator) examineLeases(ctx context.Context, management string) []Finding {
	const check = "leases"
	leases, err := o.Leases.Leases(ctx)
	refused, _ := errors.AsType[*changefeed.RefusedError](err)
	switch {
	case refused != nil:
		return []Finding{fine(check, "%s", cosmos.Brief(err)).is(FindingFailed, "feedbox leases ls lists the others; give FEEDBOX_PROCESSOR another name, or remove the records named")}
	case err != nil:
		return []Finding{fine(check, "%s", cosmos.Brief(err)).is(FindingFailed, o.cosmosAdvice(ctx, err, bookkeepingRole, o.cfg.Cosmos.Leases))}
	case len(leases) == 0:
		return []Finding{fine(check, "none yet of processor %s", o.cfg.Processor).is(FindingWarning, "start a relay: feedbox relay")}
	}
	free := 0
	for _, l := range leases {
		if l.State == changefeed.LeaseLive && l.Owner == "" {
			free++
		}
	}
	f := fine(check, "%d, all owned", len(leases))
	for _, l := range leases {
		if silent := o.Silence(l, time.Now()); silent > 0 {
			f = fine(check, "%s, owner of %s, has been silent for %s", l.Owner, changefeed.LeaseName(l.ID), silent.Round(time.Second)).
				is(FindingWarning, "if that relay has died, another takes its leases when they expire; see that one runs")
		}
	}
	if gaps := Uncovered(leases); len(gaps) > 0 {
		f = fine(check, "no lease covers %v", gaps).is(FindingFailed, "a running relay repairs this within a minute; if not, restart it")
	} else if free > 0 {
		f = fine(check, "%d of %d have no owner", free, len(leases)).is(FindingWarning, "start a relay, or wait until one takes them over")
	}
	if paused, err := o.Leases.Paused(ctx); err == nil && paused {
		f = fine(check, "the relays are told to pause").is(FindingWarning, "feedbox leases resume --all")
	}
	return []Finding{f, o.examineAge(ctx, management)}
}

const (
	// defaultDuplicateWindow is that of a topic for which nothing else was set.
	defaultDuplicateWindow = 10 * time.Minute
	// slowDelivery is far more than a takeover takes.
	slowDelivery = 2 * time.Minute
	// windowTimeout bounds the question after the topic's own window.
	windowTimeout = 5 * time.Second
)

// examineAge compares the oldest unsent event with the lifetime of events and with the
// time within which the topic drops what is sent again.
func (o *Operator) examineAge(ctx context.Context, management string) Finding {
	const check = "unsent events"
	lags, err := o.Leases.Lag(ctx)
	if err != nil {
		return fine(check, "%s", cosmos.Brief(err)).is(FindingUnknown, "feedbox lag")
	}
	var oldest time.Duration
	var behind int64
	for _, l := range lags {
		oldest, behind = max(oldest, l.Age), behind+l.Transactions
	}
	var window duplicateWindow
	if oldest >= slowDelivery { // else it does not matter
		window = o.duplicateWindow(ctx, management)
	}
	return judgeAge(fine(check, "%d transactions behind, the oldest %s old; events live %s", behind, oldest.Round(time.Second), o.cfg.EventTTL), oldest, o.cfg.EventTTL, window)
}

// duplicateWindow is the time within which the topic drops what is sent again; none if
// its duplicate detection is off.
type duplicateWindow struct {
	length  time.Duration
	assumed bool // the topic's own could not be read
}

func (w duplicateWindow) String() string {
	if w.assumed {
		return fmt.Sprintf("a duplicate window of %s (assumed: the topic's own could not be read)", w.length)
	}
	return fmt.Sprintf("the topic's duplicate window of %s", w.length)
}

// duplicateWindow asks the topics for the shortest, and assumes the default for one that
// does not tell.
func (o *Operator) duplicateWindow(ctx context.Context, management string) duplicateWindow {
	ctx, cancel := context.WithTimeout(ctx, windowTimeout)
	defer cancel()
	var windows []duplicateWindow
	for _, name := range o.topics() {
		window := duplicateWindow{length: defaultDuplicateWindow, assumed: true}
		if _, topic, err := o.topic(ctx, management, name); err == nil && topic != nil {
			window = windowOf(topic.TopicProperties)
		}
		windows = append(windows, window)
	}
	return slices.MinFunc(windows, func(a, b duplicateWindow) int { return cmp.Compare(a.length, b.length) })
}

func judgeAge(f Finding, oldest, ttl time.Duration, window duplicateWindow) Finding {
	switch (relay.Retention{TTL: ttl}).Level(oldest) {
	case relay.Critical:
		return f.is(FindingFailed, "events will be lost: find out why the relay does not send (feedbox lag, feedbox leases ls), or raise FEEDBOX_EVENT_TTL and the TTL of what is stored")
	case relay.Warning:
		return f.is(FindingWarning, "find out why the relay does not keep up: feedbox lag --watch")
	case relay.Safe:
	}
	switch {
	case oldest >= max(window.length, slowDelivery):
		return f.is(FindingWarning, fmt.Sprintf("nothing is lost yet, but they are older than %s: what is sent again once a relay dies now reaches consumers twice; find out why the relay does not keep up: feedbox lag --watch", window))
	case oldest >= slowDelivery:
		return f.is(FindingWarning, "the relay does not keep up, or waits: feedbox lag --watch shows for what")
	default:
		return f
	}
}

// Silence is how long the owner of a lease has not written it, if that is longer than an
// owner alive lets it be; 0 otherwise. Wall clocks of two machines are compared.
func (o *Operator) Silence(l changefeed.Lease, now time.Time) time.Duration {
	return silence(l, o.cfg.Lease.Renew, now)
}

// silence counts from where an owner that renews every renew, by up to a fifth late, has
// failed to do so once.
func silence(l changefeed.Lease, renew time.Duration, now time.Time) time.Duration {
	if l.Owner == "" || l.Expiry <= 0 || l.Timestamp.IsZero() {
		return 0
	}
	if silent := now.Sub(l.Timestamp); silent > min(l.Expiry, renew+renew/2)+time.Second {
		return silent
	}
	return 0
}

// Uncovered returns what live leases, and those being split, leave of the key space.
func Uncovered(leases []changefeed.Lease) []string {
	var gaps []string
	full := changefeed.FullRange()
	reached := full.Min
	below := func(a, b string) bool { // 1F and 1F00 are the same bound
		return strings.TrimRight(a, "0") < strings.TrimRight(b, "0")
	}
	for _, l := range leases { // in the order of their ranges
		if l.State == changefeed.LeaseDone || l.Range.Empty() {
			continue
		}
		if below(reached, l.Range.Min) {
			gaps = append(gaps, fmt.Sprint(changefeed.FeedRange{Min: reached, Max: l.Range.Min}))
		}
		if below(reached, l.Range.Max) {
			reached = l.Range.Max
		}
	}
	if len(leases) > 0 && below(reached, full.Max) {
		gaps = append(gaps, fmt.Sprint(changefeed.FeedRange{Min: reached, Max: full.Max}))
	}
	return gaps
}
