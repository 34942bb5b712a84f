// Package explorer shows the data of the emulators in a browser, as sections of package page.
// Only feedbox-dev uses it.
//
//   - Database: databases, containers, physical partitions, documents, queries with pages
//     and charge, the live change feed.
//   - Broker: topics, subscriptions, queues, their sessions and messages, dead letters.
//   - Faults: the faults of both emulators as switches.
//
// It reads and writes through the vendor's SDKs, as an application does. It has its own user
// agent, because faults must not affect its calls. Splits, merges, clocks and faults are calls
// of the emulators. Every list is paged or bounded. It starts no goroutine.
package explorer

import (
	"bytes"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/page"
)

//go:embed templates assets
var embedded embed.FS

var (
	templates, _ = fs.Sub(embedded, "templates") // the folders are embedded
	assets, _    = fs.Sub(embedded, "assets")
)

// pageSize is the number of documents or messages per page.
const pageSize = 25

// Explorer shows the data of two emulators. It is safe for concurrent use.
type Explorer struct {
	cosmos *cosmosemu.Server
	bus    *busemu.Server
	client *azcosmos.Client
	admin  *admin.Client
	sender *azservicebus.Client
	tails  tails
	faults faults
}

// New creates the clients without connecting. management sends requests to bus.AdminURL, because the SDK
// expects that API at the address of the broker. userAgent is the prefix of the user agent of its calls
// to Cosmos DB. The caller must close the emulators.
func New(cosmos *cosmosemu.Server, bus *busemu.Server, management policy.Policy, userAgent string) (*Explorer, error) {
	e := &Explorer{cosmos: cosmos, bus: bus, sender: bus.Client()}
	credential, err := azcosmos.NewKeyCredential(cosmos.Key())
	if err != nil {
		return nil, err
	}
	e.client, err = azcosmos.NewClientWithKey(cosmos.Endpoint(), credential, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: cosmos.HTTPClient(), Telemetry: policy.TelemetryOptions{ApplicationID: userAgent},
		Retry: policy.RetryOptions{MaxRetries: 1},
	}})
	if err != nil {
		return nil, err
	}
	e.admin, err = admin.NewClientFromConnectionString(bus.ConnectionString(), &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{PerRetryPolicies: []policy.Policy{management}},
	})
	if err != nil {
		return nil, err
	}
	e.faults = newFaults(cosmos, bus, userAgent)
	return e, nil
}

// Sections returns the sections of a page. The section Faults is optional, because the
// playground injects its own faults.
func (e *Explorer) Sections(faults bool) []page.Section {
	sections := []page.Section{e.database(), e.broker()}
	if faults {
		sections = append(sections, e.faultsSection())
	}
	return sections
}

// pretty indents JSON; other text stays unchanged.
func pretty(raw []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

// brief returns the start of a text.
func brief(text string) string {
	const most = 140
	if len(text) <= most {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:most]), nil)) + " …"
}

func missing(what, next string) error {
	return &page.Refusal{Status: http.StatusNotFound, Title: "There is no such " + what, Detail: "It does not exist, or it was deleted.", Next: next}
}

func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, &page.Refusal{Status: http.StatusBadRequest, Title: "Invalid number", Detail: strconv.Quote(text) + " is not a number.", Next: "Follow the links of the page."}
	}
	return n, nil
}
