package cosmos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
	contactdocs "feedbox/infrastructure/store/cosmos/contacts"
	contactkind "feedbox/infrastructure/store/document/contacts"
)

// world is the write and read path over an emulated account. The test controls the wire.
type world struct {
	t         *testing.T
	emulator  *cosmosemu.Server
	wire      *wire
	client    *azcosmos.Client
	container *azcosmos.ContainerClient
	app       *mediator.Mediator
	work      *cosmos.UnitsOfWork[*contact.Contact]
}

type worldOptions struct {
	emulator *cosmosemu.Options
	cosmos   *cosmos.Options
	// bare leaves out the handlers of domain events.
	bare bool
	// audit stores an entry with each commit.
	audit bool
}

func newWorld(t *testing.T, o worldOptions) *world {
	t.Helper()
	w := &world{t: t, emulator: cosmosemu.StartT(t, o.emulator), app: mediator.New()}
	must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{cosmos.PartitionKeyPath}, DefaultTTL: -1}))
	w.wire = &wire{next: w.emulator.HTTPClient()}
	var err error
	w.client, err = cosmos.NewClient(cosmos.ClientConfig{
		Endpoint: w.emulator.Endpoint(), Key: w.emulator.Key(), Options: azcore.ClientOptions{Transport: w.wire},
	})
	must(t, err)
	t.Cleanup(w.client.Close)
	w.container, err = w.client.NewContainer("contacts", "data")
	must(t, err)
	w.work, err = cosmos.NewUnitsOfWork(w.container, contactkind.Kind(), w.app, o.cosmos)
	must(t, err)
	reader, err := contactdocs.NewReader(w.container)
	must(t, err)
	audit, err := cosmos.NewAuditReader(w.container)
	must(t, err)
	if !o.bare {
		contacts.SubscribeEvents(w.app)
	}
	must(t, contacts.RegisterCommands(w.app, contacts.CommandPorts{Work: w.work, IDs: uuid.New, Now: time.Now, Audit: o.audit}))
	must(t, contacts.RegisterQueries(w.app, contacts.QueryPorts{Contacts: reader, Audit: audit}))
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wire passes requests on, unless the test has a plan for them.
type wire struct {
	next *http.Client

	mu     sync.Mutex // guards the fields below
	commit plan
	read   plan
	sent   int // transactions
}

// plan handles a request; pass sends it on.
type plan func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error)

// Do implements policy.Transporter.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	pass := func() (*http.Response, error) { return w.next.Do(r) }
	if then := w.choose(r); then != nil {
		return then(r, pass)
	}
	return pass()
}

func (w *wire) choose(r *http.Request) plan {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case r.Header.Get("x-ms-cosmos-is-batch-request") != "":
		w.sent++
		return w.commit
	case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/docs/"):
		return w.read
	default:
		return nil
	}
}

// followReads makes p handle the next reads of one document.
func (w *wire) followReads(p plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = p
}

// follow makes p handle the next transactions; nil passes them on.
func (w *wire) follow(p plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commit, w.sent = p, 0
}

func (w *wire) transactions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// once runs first for the first transaction and lets the others pass, also those
// that first itself causes.
func once(first plan) plan {
	var done atomic.Bool
	return func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		if done.CompareAndSwap(false, true) {
			return first(r, pass)
		}
		return pass()
	}
}

func john() contacts.CreateContact {
	return contacts.CreateContact{FirstName: "John", LastName: "Doe", Company: contact.CompanyFields{CompanyName: "Contoso"}}
}

func (w *world) create() contacts.ContactCreated {
	w.t.Helper()
	out, err := mediator.Send(w.t.Context(), w.app, john())
	must(w.t, err)
	return out
}

func (w *world) rename(ctx context.Context, id uuid.UUID, first string, ifMatch ...string) (command.Updated, error) {
	return mediator.Send(ctx, w.app, contacts.UpdateName{
		Target: command.Target{ID: id, IfMatch: ifMatch}, FirstName: first, LastName: "Doe",
	})
}

// stored is a stored document.
type stored struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	ETag string `json:"_etag"`
	TTL  int    `json:"ttl"`
	Data struct {
		Action           string `json:"action"`
		AggregateVersion int64  `json:"aggregateVersion"`
		Sequence         int64  `json:"sequence"`
		Version          int64  `json:"version"`
		Traceparent      string `json:"traceparent"`
		Name             struct {
			FirstName string `json:"firstName"`
		} `json:"name"`
	} `json:"data"`
}

// documents returns all documents of a contact: the contact, and its events in
// order of their sequence.
func (w *world) documents(id uuid.UUID) (c *stored, events []stored) {
	w.t.Helper()
	pager := w.container.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKeyString(id.String()), nil)
	bySequence := map[int64]stored{}
	for pager.More() {
		page, err := pager.NextPage(w.t.Context())
		must(w.t, err)
		for _, raw := range page.Items {
			var s stored
			must(w.t, json.NewDecoder(bytes.NewReader(raw)).Decode(&s))
			switch s.Type {
			case "contact":
				c = &s
				continue
			case "domainEvent":
			default:
				continue
			}
			if other, twice := bySequence[s.Data.Sequence]; twice {
				w.t.Errorf("sequence %d is used by %s and %s", s.Data.Sequence, other.ID, s.ID)
			}
			bySequence[s.Data.Sequence] = s
		}
	}
	for sequence := int64(1); len(events) < len(bySequence); sequence++ {
		e, ok := bySequence[sequence]
		if !ok {
			w.t.Fatalf("sequence %d is missing among %d events", sequence, len(bySequence))
		}
		events = append(events, e)
	}
	return c, events
}
