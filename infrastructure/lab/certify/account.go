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
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"feedbox/infrastructure/lab/wire/cosmoswire"
)

// namePrefix begins the names of all databases and topics of runs.
const namePrefix = "feedbox-certify-"

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
	db, err := a.Cosmos.NewDatabase(name)
	if err != nil {
		return err
	}
	shared := azcosmos.NewManualThroughputProperties(throughput)
	_, err = a.Cosmos.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: name}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &shared})
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok && reply.StatusCode < http.StatusInternalServerError {
		return fmt.Errorf("%w: the database %s was refused: %w", errNothing, name, err)
	}
	for i := 0; err == nil && i < len(containers); i++ {
		_, err = db.CreateContainer(ctx, containers[i], nil)
	}
	for _, topic := range topics(name) {
		if err == nil {
			_, err = a.Admin.CreateTopic(ctx, topic, &admin.CreateTopicOptions{Properties: &admin.TopicProperties{
				RequiresDuplicateDetection: new(true), DuplicateDetectionHistoryTimeWindow: new("PT10M"), AutoDeleteOnIdle: new(idleDeletion),
			}})
		}
		if err == nil {
			_, err = a.Admin.CreateSubscription(ctx, topic, subscription, &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
				RequiresSession: new(true), DeadLetteringOnMessageExpiration: new(true),
			}})
		}
	}
	return err // it names the request
}

func topics(name string) []string { return []string{name, name + wireTopic} }

// Remove deletes the database and the topics of a run. Those that do not exist are no error.
func (a *Account) Remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	db, err := a.Cosmos.NewDatabase(name)
	if err == nil {
		_, err = db.Delete(ctx, nil)
	}
	errs := []error{leftBehind("database "+name, err)}
	for _, topic := range topics(name) {
		_, err := a.Admin.DeleteTopic(ctx, topic, nil)
		errs = append(errs, leftBehind("topic "+topic, err))
	}
	return errors.Join(errs...)
}

func leftBehind(what string, err error) error {
	if reply, ok := errors.AsType[*azcore.ResponseError](err); err == nil || ok && reply.StatusCode == http.StatusNotFound {
		return nil
	}
	return fmt.Errorf("%s is left behind: %w", what, err)
}

// Leftovers returns the names of the runs that have a database or a topic. One of them may be running.
func (a *Account) Leftovers(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	var names []string
	for pages := a.Cosmos.NewQueryDatabasesPager("SELECT * FROM root", nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the databases: %w", err)
		}
		for _, db := range page.Databases {
			names = append(names, db.ID)
		}
	}
	for pages := a.Admin.NewListTopicsPager(nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the topics: %w", err)
		}
		for _, topic := range page.Topics {
			names = append(names, strings.TrimSuffix(topic.TopicName, wireTopic))
		}
	}
	slices.Sort(names)
	return slices.Compact(slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, namePrefix) })), nil
}

// ListPrice is the price of 100 RU/s for an hour in US dollars, as listed for one US region in 2025. An
// account with more regions, or with several write regions, costs a multiple.
const ListPrice = 0.008

// The other parts of an estimate.
const (
	otherStages = 36 * time.Minute // besides the load
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

// management is Azure Resource Manager. The version of its API is the first one with merges on request.
const (
	management   = "https://management.azure.com"
	mergeVersion = "2026-04-01-preview"
)

// Merger returns a function that requests the merge of a container's ranges, for Options.Merge. The
// identity needs the right to write the account with this resource id (/subscriptions/...), and the
// account must allow merges.
func Merger(identity azcore.TokenCredential, resourceID string, options *policy.ClientOptions) func(ctx context.Context, database, container string) error {
	pipeline := runtime.NewPipeline("feedbox-certify", "1", runtime.PipelineOptions{
		PerRetry: []policy.Policy{runtime.NewBearerTokenPolicy(identity, []string{management + "/.default"}, nil)},
	}, options)
	return func(ctx context.Context, database, container string) error {
		req, err := runtime.NewRequest(ctx, http.MethodPost, management+"/"+strings.Trim(resourceID, "/")+"/sqlDatabases/"+database+"/containers/"+container+"/partitionMerge?api-version="+mergeVersion)
		if err == nil {
			err = runtime.MarshalAsJSON(req, map[string]bool{"isDryRun": false})
		}
		if err != nil {
			return err
		}
		reply, err := pipeline.Do(req)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if !runtime.HasStatusCode(reply, http.StatusOK, http.StatusAccepted) { // the script waits for the end
			return runtime.NewResponseError(reply)
		}
		return nil
	}
}
