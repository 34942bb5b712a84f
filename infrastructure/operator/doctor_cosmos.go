package operator

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/cosmos/contacts"
)

// examineContainers checks that the containers are there and as they have to be.
func (o *Operator) examineContainers(ctx context.Context, process Process) []Finding {
	var found []Finding
	for _, spec := range Containers(process, o.cfg.Cosmos, Contract(o.cfg.Event)) {
		check := "container " + spec.ID
		err := cosmos.Verify(ctx, o.clients.Cosmos, o.cfg.Cosmos.Database, spec)
		if err == nil {
			detail := "partition key " + spec.PartitionKeyPath
			if spec.TTL {
				detail += ", TTL on without a default"
			} else {
				detail += ", nothing expires"
			}
			found = append(found, fine(check, "%s", detail))
			continue
		}
		f := fine(check, "%s", cosmos.Brief(err)).is(FindingFailed, o.cosmosAdvice(ctx, err, metadataRole, ""))
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
	level := o.clients.Account.Level()
	if level == "" {
		return []Finding{fine(check, "it did not describe itself").is(FindingUnknown, "")}
	}
	if err := o.clients.Account.Verify(); err != nil {
		return []Finding{fine(check, "%s", cosmos.Brief(err)).is(FindingFailed, "change the account as it says; relay and API do not start on it")}
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
			f = fine(a.check, "%s", cosmos.Brief(err)).is(FindingFailed, o.cosmosAdvice(ctx, err, DataRoles(process, o.cfg.Cosmos)[a.container], a.container))
		}
		found = append(found, f)
	}
	return found
}

// readContacts reads and queries as the API does.
func (o *Operator) readContacts(ctx context.Context) error {
	reader, err := contacts.NewReader(o.data)
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

func (o *Operator) examineParked(ctx context.Context) []Finding {
	gates, err := o.Lot.Gates(ctx)
	if err != nil {
		return []Finding{fine("parked", "%s", cosmos.Brief(err)).is(FindingFailed, o.cosmosAdvice(ctx, err, parkingRole, o.cfg.Cosmos.Parked))}
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

// status is the HTTP status of a refusal, 0 if err is none.
func status(err error) int {
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return reply.StatusCode
	}
	return 0
}
