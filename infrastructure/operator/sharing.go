package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/relay/relayport"
)

// RefusedAdvice returns the remedy for leases that a processor cannot continue. A new name would
// be the easier one, but it has no positions.
func RefusedAdvice(ttl time.Duration) string {
	return fmt.Sprintf("stop all relays of this processor and delete only the records named; a relay creates the missing leases again and repeats the events of their ranges only. "+
		"Another FEEDBOX_PROCESSOR has no positions: all stored events, up to %s, would be sent again", ttl)
}

// infoSuffix ends the id of the record that each processor keeps beside its leases.
const infoSuffix = ".info"

// LeaseSet is the leases of another processor in the same place.
type LeaseSet struct {
	Name string // of the processor; of its records if they are of another container
	Same bool   // of the same container, so it sends the same events
	// Purpose is not empty for a program that is no relay, such as feedbox feed.
	Purpose string
}

// OtherLeaseSets returns the lease sets of other processors in the same place, in the order of
// their names.
func (o *Operator) OtherLeaseSets(ctx context.Context) ([]LeaseSet, error) {
	records, err := o.store.Leases.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list the leases of other processors: %w", err)
	}
	source, err := o.store.Feed.Source(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the source of the feed: %w", err)
	}
	container := source.Host + "_" + source.Database + "_" + source.Container
	var others []LeaseSet
	for _, r := range records {
		prefix, isInfo := strings.CutSuffix(r.ID, infoSuffix)
		name, same := strings.CutSuffix(prefix, container)
		if isInfo && (!same || name != o.cfg.Processor) {
			others = append(others, LeaseSet{Name: name, Same: same, Purpose: r.Purpose()})
		}
	}
	slices.SortFunc(others, func(a, b LeaseSet) int { return strings.Compare(a.Name, b.Name) })
	return others, nil
}

// Adopt makes the configured processor the owner of the parked events, and records the configured shards.
// It refuses other shards with a fault.Conflict while a lease has an owner: a relay that runs sends to the
// recorded ones, and one that was killed may have sent events after its checkpoint, which the next owner
// sends again and the new topics do not drop. The shards of a damaged marker are not known, so they count as others.
func (o *Operator) Adopt(ctx context.Context) (previous string, err error) {
	if changed := o.CheckShards(ctx); changed != nil {
		if _, ok := errors.AsType[*relayport.ShardsError](changed); !ok && !errors.Is(changed, ErrDamagedOwner) {
			return "", changed
		}
		leases, err := o.Leases.Leases(ctx)
		if err != nil {
			return "", err
		}
		for _, l := range leases {
			if l.State == changefeed.LeaseLive && l.Owner != "" {
				return "", fault.New(fault.Conflict, "relay_not_stopped", fmt.Sprintf("the relay %s owns ranges: stop all relays with SIGTERM. "+
					"If it was killed, start a relay with the previous shards, wait until the oldest unsent event of feedbox lag is younger than the kill, and stop it", l.Owner))
			}
		}
	}
	return o.store.Adopt(ctx, o.cfg.Processor, o.cfg.Shards()...)
}

// CheckShards returns a *relayport.ShardsError if the recorded shards of the broker are not those
// configured.
func (o *Operator) CheckShards(ctx context.Context) error {
	return o.store.CheckShards(ctx, o.cfg.Shards())
}

// ChangedShards returns the error of CheckShards if the recorded shards are others, and nil also if the store
// does not answer.
func (o *Operator) ChangedShards(ctx context.Context) *relayport.ShardsError {
	changed, _ := errors.AsType[*relayport.ShardsError](o.CheckShards(ctx))
	return changed
}

// ErrDamagedOwner is the error of ParkedOwner for a marker that Adopt replaces.
var ErrDamagedOwner = relayport.ErrDamagedOwner

// ParkedOwner returns the processor that owns the parked events, "" if none has claimed them.
func (o *Operator) ParkedOwner(ctx context.Context) (string, error) { return o.store.Owner(ctx) }

// examineOwner finds parked events that belong to another processor, or to other shards. It reports nothing if
// there are none.
func (o *Operator) examineOwner(ctx context.Context) (found []Finding) {
	if owner, err := o.ParkedOwner(ctx); err != nil {
		found = append(found, o.failed(ctx, "owner of parked events", err, PartParked))
	} else if owner != "" && owner != o.cfg.Processor {
		refusal := &relayport.OwnedError{Owner: owner, Processor: o.cfg.Processor}
		found = append(found, Fine("owner of parked events", "%s", owner).Is(FindingFailed, refusal.Error()))
	}
	if changed := o.ChangedShards(ctx); changed != nil {
		found = append(found, Fine("shards of the broker", "changed").Is(FindingFailed, changed.Error()))
	}
	return found
}

// examineLeaseSets finds other processors with leases of the same container. It reports nothing if there are
// none.
func (o *Operator) examineLeaseSets(ctx context.Context) (found []Finding) {
	const check = "other lease sets"
	others, err := o.OtherLeaseSets(ctx)
	if err != nil {
		return append(found, o.described(check, err).Is(FindingUnknown, ""))
	}
	for _, set := range others {
		f := Fine(check, "%s, of another container", set.Name)
		switch {
		case set.Purpose != "":
			f = Fine(check, "%s, of feedbox %s", set.Name, set.Purpose)
		case set.Same:
			f = Fine(check, "processor %s has leases of the same container", set.Name).
				Is(FindingWarning, "if relays of "+set.Name+" run, each event is sent by both; if "+set.Name+" was given up, delete its records")
		}
		found = append(found, f)
	}
	return found
}

// examineFormer finds containers that relays have read and that are not configured any more, although they have
// unsent events. It reports nothing if there are none.
func (o *Operator) examineFormer(ctx context.Context) (found []Finding) {
	if o.store.LeasesOf == nil {
		return nil
	}
	entries, err := o.store.Others(ctx)
	if err != nil {
		return []Finding{o.described(formerCheck, err).Is(FindingUnknown, "")}
	}
	for _, entry := range entries {
		container, _, _ := strings.Cut(entry, "/")
		if slices.Contains(o.cfg.More, entry) {
			continue
		}
		var lags []changefeed.RangeLag
		var leases []changefeed.Lease
		former, err := o.store.LeasesOf(entry)
		if err == nil {
			lags, err = former.Lag(ctx)
		}
		if err == nil {
			leases, err = former.Leases(ctx)
		}
		if errors.Is(err, changefeed.ErrNotFound) { // it was deleted
			continue
		}
		var behind int64
		for _, l := range lags {
			if behind += l.Transactions; !l.Known && err == nil {
				err = fmt.Errorf("the lag of %s is unknown: %s", changefeed.LeaseName(l.ID), l.Error)
			}
		}
		// No warning if it has a live owner, because relays with another configuration may read it.
		add := "add " + entry + " to FEEDBOX_RELAY_CONTAINERS until its events are sent; if another processor sends them, or they are not needed, delete the leases of this one"
		unmeasured := len(Uncovered(leases)) > 0 || slices.ContainsFunc(leases, func(l changefeed.Lease) bool { return l.State != changefeed.LeaseLive })
		owned := slices.ContainsFunc(lags, func(l changefeed.RangeLag) bool { return l.Owner != "" && o.Silence(l.Lease, time.Now()) == 0 })
		switch {
		case err != nil:
			f := o.described(formerCheck, err)
			f.Detail = container + ": " + f.Detail
			found = append(found, f.Is(FindingUnknown, "let this identity read it, or ignore this if its events were sent before it was removed"))
		case behind > 0 && !owned:
			found = append(found, Fine(formerCheck, "%s: %d transactions behind, and no relay of this processor reads it", container, behind).
				Is(FindingWarning, add))
		case unmeasured && !owned:
			found = append(found, Fine(formerCheck, "%s: nothing measures the lag of a part of the keys, because it is being split or has no lease", container).
				Is(FindingUnknown, add))
		}
	}
	return found
}

const formerCheck = "former containers"
