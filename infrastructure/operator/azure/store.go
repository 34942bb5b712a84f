package azure

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/changefeed/cosmosfeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/contacts"
	"feedbox/infrastructure/store/cosmos/parked"
	"feedbox/infrastructure/store/document"
)

// StoreClients are what an operator's store works with, ready to use.
type StoreClients struct {
	Cosmos *azcosmos.Client
	// Clock and Account see each request of Cosmos.
	Clock   *Clock
	Account *cosmos.Account
	// Identity is the credential of this process; nil where only keys are used.
	Identity azcore.TokenCredential
}

// Store is an operator's store in Cosmos DB, whose events keep a contract.
func Store(cfg config.Cosmos, contract document.EventContract, clients StoreClients) (operator.Store, error) {
	var s operator.Store
	decoder, err := document.NewEventDecoder(contract)
	if err != nil {
		return s, err
	}
	data, err1 := clients.Cosmos.NewContainer(cfg.Database, cfg.Container)
	aside, err2 := clients.Cosmos.NewContainer(cfg.Database, cfg.Parked)
	feed, err3 := cosmosfeed.NewFeed(clients.Cosmos, cfg.Database, cfg.Container)
	leases, err4 := cosmosfeed.NewLeaseStore(clients.Cosmos, cfg.Database, cfg.Leases)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return s, err
	}
	events, err1 := cosmos.NewEventStore(data, decoder)
	lot, err2 := parked.New(aside)
	return operator.Store{
		Feed: feed, Decoder: decoder, Events: events, Leases: leases, Parked: lot,
		Doctor: &storeDoctor{cfg: cfg, contract: contract, clients: clients, data: data, identity: clients.Identity},
	}, errors.Join(err1, err2)
}

// storeDoctor examines an account, its database and containers, and the rights in them.
type storeDoctor struct {
	cfg      config.Cosmos
	contract document.EventContract
	clients  StoreClients
	data     *azcosmos.ContainerClient
	identity azcore.TokenCredential
}

var _ operator.StoreDoctor = (*storeDoctor)(nil)

// Examine implements operator.StoreDoctor.
func (o *storeDoctor) Examine(process operator.Process, step func(operator.Examination) bool) bool {
	name := func(ctx context.Context) []operator.Finding {
		return []operator.Finding{operator.LookUp(ctx, "cosmos dns", o.host(), "FEEDBOX_COSMOS_ENDPOINT")}
	}
	if !step(name) {
		return false
	}
	usable := step(func(ctx context.Context) []operator.Finding { return o.examineContainers(ctx, process) })
	step(o.examineAccount)
	step(o.clients.Clock.examine)
	if usable && process == operator.ProcessAPI {
		usable = step(o.examineContacts)
	}
	return usable
}

// Advise implements operator.StoreDoctor.
func (o *storeDoctor) Advise(ctx context.Context, err error, part operator.Part) string {
	container := map[operator.Part]string{operator.PartFeed: o.cfg.Container, operator.PartLeases: o.cfg.Leases, operator.PartParked: o.cfg.Parked}[part]
	return o.advice(ctx, err, DataRoles(operator.ProcessRelay, o.cfg)[container], container)
}

func (o *storeDoctor) host() string {
	u, err := url.Parse(o.cfg.Endpoint)
	if err != nil {
		return o.cfg.Endpoint // the configuration has been checked
	}
	return u.Hostname()
}

// examineContainers checks that the containers are there and as they have to be.
func (o *storeDoctor) examineContainers(ctx context.Context, process operator.Process) []operator.Finding {
	var found []operator.Finding
	for _, spec := range Containers(process, o.cfg, o.contract) {
		check := "container " + spec.ID
		err := cosmos.Verify(ctx, o.clients.Cosmos, o.cfg.Database, spec)
		if err == nil {
			detail := "partition key " + spec.PartitionKeyPath
			if spec.TTL {
				detail += ", TTL on without a default"
			} else {
				detail += ", nothing expires"
			}
			found = append(found, operator.Fine(check, "%s", detail))
			continue
		}
		f := operator.Fine(check, "%s", cosmos.Brief(err)).Is(operator.FindingFailed, o.advice(ctx, err, metadataRole, ""))
		found = append(found, f)
		if status(err) != http.StatusNotFound && status(err) != 0 || ctx.Err() != nil {
			break // the others would fail the same way
		}
	}
	return found
}

// examineAccount looks at what the account told with the first reply.
func (o *storeDoctor) examineAccount(context.Context) []operator.Finding {
	const check = "account"
	level := o.clients.Account.Level()
	if level == "" {
		return []operator.Finding{operator.Fine(check, "it did not describe itself").Is(operator.FindingUnknown, "")}
	}
	if err := o.clients.Account.Verify(); err != nil {
		return []operator.Finding{operator.Fine(check, "%s", cosmos.Brief(err)).Is(operator.FindingFailed, "change the account as it says; relay and API do not start on it")}
	}
	return []operator.Finding{operator.Fine(check, "consistency %s, one write region", level)}
}

// examineContacts uses the data as the API does.
func (o *storeDoctor) examineContacts(ctx context.Context) []operator.Finding {
	const check = "read contacts"
	if err := o.readContacts(ctx); err != nil {
		return []operator.Finding{operator.Fine(check, "%s", cosmos.Brief(err)).Is(operator.FindingFailed, o.advice(ctx, err, DataRoles(operator.ProcessAPI, o.cfg)[o.cfg.Container], o.cfg.Container))}
	}
	return []operator.Finding{operator.Fine(check, "allowed")}
}

// readContacts reads and queries as the API does.
func (o *storeDoctor) readContacts(ctx context.Context) error {
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

// status is the HTTP status of a refusal, 0 if err is none.
func status(err error) int {
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return reply.StatusCode
	}
	return 0
}
