package wiring

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/cosmos"
)

// examineContainers checks that the containers are there and as they have to be.
func (o *Operator) examineContainers(ctx context.Context, process Process) []Finding {
	var found []Finding
	for _, spec := range containers(process, o.cfg.Cosmos) {
		check := "container " + spec.ID
		err := cosmos.Verify(ctx, o.client, o.cfg.Cosmos.Database, spec)
		if err == nil {
			detail := "partition key " + spec.PartitionKeyPath
			if spec.TTL {
				detail += ", TTL on without a default"
			}
			found = append(found, fine(check, "%s", detail))
			continue
		}
		f := fine(check, "%s", Brief(err)).is(FindingFailed, o.cosmosAdvice(ctx, err, metadataRole, ""))
		found = append(found, f)
		if status(err) != http.StatusNotFound && status(err) != 0 || ctx.Err() != nil {
			break // the others would fail the same way
		}
	}
	return found
}

// examineAccount looks at what the account told with the first reply.
func (o *Operator) examineAccount(context.Context) []Finding {
	const check = "account"
	level := o.about.Level()
	if level == "" {
		return []Finding{fine(check, "it did not describe itself").is(FindingUnknown, "")}
	}
	if err := o.about.Verify(); err != nil {
		return []Finding{fine(check, "%s", Brief(err)).is(FindingFailed, "change the account as it says; relay and API do not start on it")}
	}
	return []Finding{fine(check, "consistency %s, one write region", level)}
}

// access is one way in which a process uses a container.
type access struct {
	check, container string
	try              func(ctx context.Context) error
}

// accesses are those of process, without a change.
func (o *Operator) accesses(process Process) []access {
	if process == ProcessAPI {
		return []access{{"read contacts", o.cfg.Cosmos.Container, o.readContacts}}
	}
	return []access{
		{"read the change feed", o.cfg.Cosmos.Container, o.readFeed},
		{"read the leases", o.cfg.Cosmos.Leases, func(ctx context.Context) error {
			_, err := o.Leases.Paused(ctx)
			return err
		}},
		{"read parked events", o.cfg.Cosmos.Parked, func(ctx context.Context) error {
			_, err := o.Lot.Intents(ctx)
			return err
		}},
	}
}

// examineAccess uses each container as the process does.
func (o *Operator) examineAccess(ctx context.Context, process Process) []Finding {
	var found []Finding
	for _, a := range o.accesses(process) {
		f := fine(a.check, "allowed")
		if err := a.try(ctx); err != nil {
			f = fine(a.check, "%s", Brief(err)).is(FindingFailed, o.cosmosAdvice(ctx, err, DataRoles(process, o.cfg.Cosmos)[a.container], a.container))
		}
		found = append(found, f)
	}
	return found
}

// readContacts reads and queries as the API does.
func (o *Operator) readContacts(ctx context.Context) error {
	reader, err := cosmos.NewContactReader(o.data)
	if err != nil {
		return err
	}
	if _, err := reader.Read(ctx, uuid.Nil, "", ""); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	_, err = reader.Page(ctx, 1, "", "")
	return err
}

// readFeed reads one document of each physical range.
func (o *Operator) readFeed(ctx context.Context) error {
	ranges, err := o.feed.Ranges(ctx)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		page, err := o.feed.Read(ctx, changefeed.ReadRequest{Range: r, MaxItems: 1})
		if _, split := errors.AsType[*changefeed.SplitError](err); split {
			continue // it was split a moment ago
		}
		if err != nil {
			return err
		}
		if page.Release != nil {
			page.Release()
		}
	}
	return nil
}

// examineLeases looks at who owns what, and how old the oldest unsent event is.
func (o *Operator) examineLeases(ctx context.Context) []Finding {
	const check = "leases"
	leases, err := o.Leases.Leases(ctx)
	refused, _ := errors.AsType[*changefeed.RefusedError](err)
	switch {
	case refused != nil:
		return []Finding{fine(check, "%s", Brief(err)).is(FindingFailed, "feedbox leases ls lists the others; give FEEDBOX_PROCESSOR another name, or remove the records named")}
	case err != nil:
		return []Finding{fine(check, "%s", Brief(err)).is(FindingFailed, o.cosmosAdvice(ctx, err, bookkeepingRole, o.cfg.Cosmos.Leases))}
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
	if gaps := Uncovered(leases); len(gaps) > 0 {
		f = fine(check, "no lease covers %v", gaps).is(FindingFailed, "a running relay repairs this within a minute; if not, restart it")
	} else if free > 0 {
		f = fine(check, "%d of %d have no owner", free, len(leases)).is(FindingWarning, "start a relay, or wait until one takes them over")
	}
	if paused, err := o.Leases.Paused(ctx); err == nil && paused {
		f = fine(check, "the relays are told to pause").is(FindingWarning, "feedbox leases resume --all")
	}
	return []Finding{f, o.examineAge(ctx)}
}

// examineAge compares the oldest unsent event with the lifetime of events.
func (o *Operator) examineAge(ctx context.Context) Finding {
	const check = "unsent events"
	lags, err := o.Leases.Lag(ctx)
	if err != nil {
		return fine(check, "%s", Brief(err)).is(FindingUnknown, "feedbox lag")
	}
	var oldest time.Duration
	var behind int64
	for _, l := range lags {
		oldest, behind = max(oldest, l.Age), behind+l.Transactions
	}
	f := fine(check, "%d transactions behind, the oldest %s old; events live %s", behind, oldest.Round(time.Second), o.cfg.EventTTL)
	switch (relay.Retention{TTL: o.cfg.EventTTL}).Level(oldest) {
	case relay.Critical:
		return f.is(FindingFailed, "events will be lost: find out why the relay does not send (feedbox lag, feedbox leases ls), or raise FEEDBOX_EVENT_TTL and the TTL of what is stored")
	case relay.Warning:
		return f.is(FindingWarning, "find out why the relay does not keep up: feedbox lag --watch")
	default:
		return f
	}
}

func (o *Operator) examineParked(ctx context.Context) []Finding {
	gates, err := o.Lot.Gates(ctx)
	if err != nil {
		return []Finding{fine("parked", "%s", Brief(err)).is(FindingFailed, o.cosmosAdvice(ctx, err, parkingRole, o.cfg.Cosmos.Parked))}
	}
	if len(gates) == 0 {
		return []Finding{fine("parked", "none")}
	}
	var events int64
	for _, g := range gates {
		events += g.Events
	}
	return []Finding{fine("parked", "%d keys with %d events", len(gates), events).is(FindingWarning, "feedbox parked ls")}
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

// status is the HTTP status of a refusal, 0 if err is none.
func status(err error) int {
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return reply.StatusCode
	}
	return 0
}
