package certify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"feedbox/infrastructure/lab/wire"
	"feedbox/infrastructure/lab/wire/cosmoswire"
)

// namePrefix begins the names of all databases and topics of runs.
const namePrefix = "feedbox-certify-"

// newName returns the name of a run.
func newName(now time.Time) string {
	return namePrefix + now.UTC().Format("20060102-150405-") + wire.RandomName()
}

// throughput is the one of the database, in RU/s. Its containers share it.
const throughput = 1000

const (
	wireTopic    = "-wire"   // after the name of the run: the topic of the scripts; that of the load has the name only
	subscription = "certify" // of both topics
	idleDeletion = "P1D"     // the service deletes the topics of a killed run after a day
	// removeTimeout bounds the requests that create, list or remove what a run has.
	removeTimeout = 2 * time.Minute
)

// Account has the clients of the account and the namespace.
type Account struct {
	Cosmos *azcosmos.Client // with the account's key, because roles of Entra ID cannot create databases
	Admin  *admin.Client    // with the Manage right
}

// errNothing means that the account refused the first request of a run, so there is nothing to remove.
var errNothing = errors.New("nothing was created")

func (a *Account) create(ctx context.Context, name string, containers []azcosmos.ContainerProperties) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	shared := azcosmos.NewManualThroughputProperties(throughput)
	_, err := a.Cosmos.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: name}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &shared})
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok && reply.StatusCode < http.StatusInternalServerError {
		return fmt.Errorf("%w: the database %s was refused: %w", errNothing, name, err)
	}
	if err != nil {
		return fmt.Errorf("create the database %s: %w", name, err)
	}
	db, err := a.Cosmos.NewDatabase(name)
	if err != nil {
		return err
	}
	for _, c := range containers {
		if _, err := db.CreateContainer(ctx, c, nil); err != nil {
			return fmt.Errorf("create the container %s: %w", c.ID, err)
		}
	}
	for _, topic := range topics(name) {
		if _, err := a.Admin.CreateTopic(ctx, topic, &admin.CreateTopicOptions{Properties: &admin.TopicProperties{
			RequiresDuplicateDetection: new(true), DuplicateDetectionHistoryTimeWindow: new("PT10M"), AutoDeleteOnIdle: new(idleDeletion),
		}}); err != nil {
			return fmt.Errorf("create the topic %s: %w", topic, err)
		}
		if _, err := a.Admin.CreateSubscription(ctx, topic, subscription, &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
			RequiresSession: new(true), DeadLetteringOnMessageExpiration: new(true),
		}}); err != nil {
			return fmt.Errorf("create the subscription of %s: %w", topic, err)
		}
	}
	return nil
}

func topics(name string) []string { return []string{name, name + wireTopic} }

// Remove deletes the database and the topics of a run. Those that do not exist are no error.
func (a *Account) Remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	var errs []error
	keep := func(what string, err error) {
		if reply, ok := errors.AsType[*azcore.ResponseError](err); err != nil && (!ok || reply.StatusCode != http.StatusNotFound) {
			errs = append(errs, fmt.Errorf("%s is left behind: %w", what, err))
		}
	}
	db, err := a.Cosmos.NewDatabase(name)
	if err == nil {
		_, err = db.Delete(ctx, nil)
	}
	keep("database "+name, err)
	for _, topic := range topics(name) {
		_, err := a.Admin.DeleteTopic(ctx, topic, nil)
		keep("topic "+topic, err)
	}
	return errors.Join(errs...)
}

// Leftovers returns the names of the runs that have a database or a topic. One of them may be running.
func (a *Account) Leftovers(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	var names []string
	add := func(name string) {
		if strings.HasPrefix(name, namePrefix) {
			names = append(names, strings.TrimSuffix(name, wireTopic))
		}
	}
	for pages := a.Cosmos.NewQueryDatabasesPager("SELECT * FROM root", nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the databases: %w", err)
		}
		for _, db := range page.Databases {
			add(db.ID)
		}
	}
	for pages := a.Admin.NewListTopicsPager(nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the topics: %w", err)
		}
		for _, topic := range page.Topics {
			add(topic.TopicName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// ListPrice is the price of 100 RU/s for an hour in US dollars, as listed for one US region in 2025. An
// account with more regions, or with several write regions, costs a multiple.
const ListPrice = 0.008

// The other parts of an estimate.
const (
	otherStages = 25 * time.Minute // besides the load
	splitsTake  = 4 * time.Hour
	splitRU     = 13_000
	namespace   = 0.0135        // US dollars of an hour of Service Bus, Standard tier
	change      = 6 * 0.8 / 1e6 // and of the operations that send and receive its event
)

// Estimate returns how long the run takes and what it costs.
func (o *Options) Estimate() (time.Duration, float64) {
	took := otherStages + o.Duration
	if o.Splits {
		took += splitsTake
	}
	return took, o.cost(took)
}

// cost returns what a run of a duration costs. Each wall-clock hour that it touches is charged in full,
// with the highest throughput in it.
func (o *Options) cost(took time.Duration) float64 {
	hours, provisioned := math.Ceil(took.Hours())+1, float64(throughput)
	if o.Splits {
		for i := range cosmoswire.Scripts {
			if cosmoswire.Scripts[i].Splits() {
				provisioned += splitRU
			}
		}
	}
	return hours*(provisioned/100*o.Price+namespace) + o.Rate*min(o.Duration, took).Seconds()*change
}

// affordable returns how long a run may take within its budget.
func (o *Options) affordable() time.Duration {
	took := time.Duration(0)
	for took < 1000*time.Hour && o.cost(took+time.Hour) <= o.Budget {
		took += time.Hour
	}
	return took
}
