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
)

// examineLeases checks the owners of all leases and the age of the oldest unsent event.
func (o *Operator) examineLeases(ctx context.Context, management string) []Finding {
	const check = "leases"
	leases, err := o.Leases.Leases(ctx)
	refused, _ := errors.AsType[*changefeed.RefusedError](err)
	switch {
	case refused != nil:
		return []Finding{o.described(check, err).Is(FindingFailed, RefusedAdvice(o.cfg.EventTTL))}
	case err != nil:
		return []Finding{o.failed(ctx, check, err, PartLeases)}
	case len(leases) == 0:
		return []Finding{Fine(check, "none yet of processor %s", o.cfg.Processor).Is(FindingWarning, "start a relay: feedbox relay")}
	}
	gaps := Uncovered(leases)
	leases = withoutParts(leases)
	free, splits := 0, 0
	for _, l := range leases {
		switch isSplit := l.State == changefeed.LeaseSplit; {
		case isSplit && time.Since(l.Timestamp) <= splitTime:
			splits++
		case l.Owner == "":
			free++
		}
	}
	f := Fine(check, "%d, all owned", len(leases))
	if splits > 0 {
		f = Fine(check, "%d, of which %d are being split, the others owned", len(leases), splits)
	}
	var owners []string
	silent, longest := 0, time.Duration(0)
	for _, l := range leases {
		if d := o.Silence(l, time.Now()); d > 0 {
			silent, longest = silent+1, max(longest, d)
			if !slices.Contains(owners, l.Owner) {
				owners = append(owners, l.Owner)
			}
		}
	}
	if silent > 0 {
		f = Fine(check, "%d of %d have a silent owner, for up to %s: %s", silent, len(leases), longest.Round(time.Second), strings.Join(owners, ", ")).
			Is(FindingWarning, "if that relay has died, another takes its leases when they expire; see that one runs")
	}
	if len(gaps) > 0 {
		f = Fine(check, "no lease covers %v", gaps).Is(FindingFailed, "a running relay repairs this within a minute; if not, restart it")
	} else if free > 0 {
		f = Fine(check, "%d of %d have no owner", free, len(leases)).Is(FindingWarning, "start a relay, or wait until one takes them over")
	}
	found := []Finding{f}
	if paused, err := o.Leases.Paused(ctx); err != nil {
		found = append(found, o.failed(ctx, "pause", err, PartLeases))
	} else if paused {
		found = append(found, Fine("pause", "all ranges are paused by an operator").Is(FindingWarning, o.cfg.Command("feedbox leases resume --all")))
	}
	return append(append(found, o.examineConditions(leases)...), o.examineAge(ctx, management))
}

// examineConditions finds ranges whose owner is live and does not send.
func (o *Operator) examineConditions(leases []changefeed.Lease) (found []Finding) {
	for _, bad := range []Condition{Stopped, Unread, Retrying, Paused} {
		count, example, status := 0, "", FindingWarning
		for _, l := range leases {
			if c, _ := (Range{Lease: l, Silent: o.Silence(l, time.Now())}).Condition(time.Now()); c == bad {
				count, example = count+1, changefeed.LeaseName(l.ID)
			}
		}
		if bad == Stopped {
			status = FindingFailed
		}
		if count > 0 {
			found = append(found, Fine("ranges", "%d of %d are %s, such as %s", count, len(leases), bad, example).Is(status, o.cfg.Command("feedbox leases ls")+" shows the errors"))
		}
	}
	return found
}

const (
	// slowDelivery is far longer than a takeover, so a failover causes no warning.
	slowDelivery = 2 * time.Minute
	// windowTimeout bounds the query for the broker's duplicate window.
	windowTimeout = 5 * time.Second
)

// examineAge compares the age of the oldest unsent event with the event TTL and with the
// broker's duplicate window.
func (o *Operator) examineAge(ctx context.Context, management string) Finding {
	const check = "unsent events"
	measured, err := o.Measure(ctx)
	if err != nil {
		return o.described(check, err).Is(FindingUnknown, o.cfg.Command("feedbox lag"))
	}
	splits := slices.ContainsFunc(measured.Ranges, func(r Range) bool { return r.State == changefeed.LeaseSplit })
	for _, r := range measured.Ranges {
		if isPart := splits && r.State == changefeed.LeasePending; !r.Lag.Known && !isPart {
			reason := cmp.Or(r.Lag.Error, "it is being split") // then it has no reader
			return Fine(check, "the lag of %s is unknown: %s", changefeed.LeaseName(r.ID), reason).Is(FindingUnknown, o.cfg.Command("feedbox lag"))
		}
	}
	if len(measured.Uncovered) > 0 {
		return Fine(check, "no lease covers %v, so nothing measures the lag there", measured.Uncovered).Is(FindingUnknown, o.cfg.Command("feedbox leases ls"))
	}
	oldest := measured.Oldest
	var window Window
	if oldest >= slowDelivery && o.broker != nil { // judgeAge compares older events only
		ctx, cancel := context.WithTimeout(ctx, windowTimeout)
		defer cancel()
		window = o.broker.Doctor.Window(ctx, management)
	}
	return o.judgeAge(Fine(check, "%d transactions behind, the oldest %s old; events live %s", measured.Behind, oldest.Round(time.Second), o.cfg.EventTTL), oldest, window)
}

// splitTime is the time in which a running relay completes a split. Meanwhile its lease has no owner.
const splitTime = time.Minute

// withoutParts returns leases without the parts of ranges that are being split, which are covered by the leases
// of those.
func withoutParts(leases []changefeed.Lease) []changefeed.Lease {
	if !slices.ContainsFunc(leases, func(l changefeed.Lease) bool { return l.State == changefeed.LeaseSplit }) {
		return leases
	}
	return slices.DeleteFunc(leases, func(l changefeed.Lease) bool { return l.State == changefeed.LeasePending })
}

func (w Window) String() string {
	if w.Assumed {
		return fmt.Sprintf("a duplicate window of %s (assumed: the broker's own could not be read)", w.Length)
	}
	return fmt.Sprintf("the broker's duplicate window of %s", w.Length)
}

func (o *Operator) judgeAge(f Finding, oldest time.Duration, window Window) Finding {
	watch := o.cfg.Command("feedbox lag --watch")
	switch relay.LevelOf(oldest, o.cfg.EventTTL) {
	case relay.Critical:
		return f.Is(FindingFailed, fmt.Sprintf("events will be lost: find out why the relay does not send (%s, %s), or raise FEEDBOX_EVENT_TTL and the TTL of what is stored", o.cfg.Command("feedbox lag"), o.cfg.Command("feedbox leases ls")))
	case relay.Warning:
		return f.Is(FindingWarning, "find out why the relay does not keep up: "+watch)
	case relay.Safe:
	}
	switch {
	case oldest >= max(window.Length, slowDelivery):
		return f.Is(FindingWarning, fmt.Sprintf("nothing is lost yet, but they are older than %s: what is sent again once a relay dies now reaches consumers twice; find out why the relay does not keep up: %s", window, watch))
	case oldest >= slowDelivery:
		return f.Is(FindingWarning, "the relay does not keep up, or waits: "+watch+" shows for what")
	default:
		return f
	}
}

// Silence returns for how long the owner of a lease has not renewed it; 0 if the last renewal
// is recent enough for a live owner. It compares the wall clocks of two machines.
func (o *Operator) Silence(l changefeed.Lease, now time.Time) time.Duration {
	return silence(l, o.cfg.Lease.Renew, now)
}

// silence tolerates a renewal that is half an interval late, because owners renew up to a fifth
// late by jitter, and a second of clock skew.
func silence(l changefeed.Lease, renew time.Duration, now time.Time) time.Duration {
	if l.Owner == "" || l.Expiry <= 0 || l.Timestamp.IsZero() {
		return 0
	}
	if silent := now.Sub(l.Timestamp); silent > min(l.Expiry, renew+renew/2)+time.Second {
		return silent
	}
	return 0
}

// Uncovered returns the parts of the key space that no live or splitting lease covers.
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
