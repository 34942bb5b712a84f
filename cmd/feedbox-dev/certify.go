package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"feedbox/infrastructure/lab/certify"
	"feedbox/infrastructure/lab/wire"
	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/wiring"
)

// certifying has the flags of certify.
type certifying struct {
	certify.Options

	yes, leftovers               bool
	folder, busAdmin, resourceID string
	out, errOut                  io.Writer
	environ                      []string
	key                          string // of the account
}

func certifyCommand(out, errOut io.Writer, environ []string) *cobra.Command {
	c := &certifying{out: out, errOut: errOut, environ: environ}
	cmd := &cobra.Command{
		Use:   "certify",
		Short: "Check an Azure account and write a report",
		Long: `Check the assumptions about Azure (UNVERIFIED.md) and the promises of the outbox on a
Cosmos DB account and a Service Bus namespace, and write a report as JSON and HTML.

It removes everything that it creates, also after Ctrl-C. The account and the
namespace are those of the environment, as for feedbox relay:

  FEEDBOX_COSMOS_ENDPOINT, FEEDBOX_COSMOS_KEY   with the account's key
  FEEDBOX_SERVICEBUS_CONNECTION_STRING          with the Manage right

Exit codes: 0 everything as expected, 1 failure, 2 wrong usage, 3 an assumption is
contradicted or a promise is broken.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.DurationVar(&c.Duration, "duration", 30*time.Minute, "how long contacts are changed")
	flags.Float64Var(&c.Rate, "rate", 10, "changes per second")
	flags.Int64Var(&c.Seed, "seed", 0, "seed of changes and kills (0 = random)")
	flags.Float64Var(&c.Budget, "budget", 5, "most US dollars that the run may cost")
	flags.Float64Var(&c.Price, "price", certify.ListPrice, "US dollars of 100 RU/s for an hour")
	flags.BoolVar(&c.yes, "yes", false, "do not ask")
	flags.StringVar(&c.folder, "report", ".", "folder of the report")
	flags.BoolVar(&c.Splits, "splits", false, "split ranges, too: 13,000 RU/s for each script that does")
	flags.StringVar(&c.resourceID, "resource-id", "", "resource id of the account, to merge ranges with the identity of az login")
	flags.BoolVar(&c.Emulator, "emulator", false, "the account is that of feedbox-dev emulators")
	flags.StringVar(&c.busAdmin, "servicebus-admin", "", "URL of the admin API of an emulator")
	flags.BoolVar(&c.leftovers, "remove-leftovers", false, "remove the databases and topics of killed runs, and end")
	return cmd
}

func (c *certifying) run(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	if c.leftovers {
		return c.removeLeftovers(ctx)
	}
	took, cost := c.Estimate()
	if cost > c.Budget {
		return usageError{fmt.Errorf("the run costs about $%.2f, more than --budget %.2f: raise it, or give a shorter --duration", cost, c.Budget)}
	}
	if err := c.confirm("The run takes about %v and costs about $%.2f at list prices of one region; it ends before $%.2f.\nIt creates a database of 1,000 RU/s at %s and two topics, and removes them.",
		took, cost, c.Budget, c.Endpoint); err != nil {
		return err
	}
	report, err := certify.Run(ctx, &c.Options)
	if azure.StatusOf(err) == http.StatusUnauthorized || azure.StatusOf(err) == http.StatusForbidden {
		err = fmt.Errorf("%s: give the key of the account and a connection string with the Manage right, and let their firewalls accept this machine", azure.Brief(err))
	}
	files, writeErr := report.Write(c.folder, c.secrets(), []string{c.Endpoint, brokerOf(c.ConnectionString)})
	_, _ = fmt.Fprintf(c.out, "%d rows confirmed, %d contradicted, %d not reached\n", report.Counts[wire.Confirmed], report.Counts[wire.Contradicted], report.Counts[wire.NotReached])
	if report.Promises != nil {
		err = errors.Join(err, printVerdict(c.out, report.Promises))
	}
	_, _ = fmt.Fprintf(c.out, "report: %s\n", strings.Join(files, ", "))
	if err = errors.Join(err, writeErr); err == nil && !report.Good() {
		err = fmt.Errorf("an assumption about Azure is contradicted, or %w", errBroken)
	}
	return err
}

// prepare reads the configuration and creates the clients.
func (c *certifying) prepare() error {
	cfg, err := config.LoadRelay(c.settings("", ""))
	if err != nil {
		return err
	}
	if !cfg.Cosmos.Key.IsSet() || !cfg.ServiceBus.ConnectionString.IsSet() {
		return usageError{errors.New("FEEDBOX_COSMOS_KEY and FEEDBOX_SERVICEBUS_CONNECTION_STRING are required: a database cannot be created with a role of Entra ID")}
	}
	c.Seed = cmp.Or(c.Seed, rand.Int64())
	if !(c.Duration > 0 && c.Rate > 0 && c.Budget > 0 && c.Price > 0) { // so that NaN is refused
		return usageError{errors.New("--duration, --rate, --budget and --price must be positive")}
	}
	if folder, err := os.Stat(c.folder); err != nil || !folder.IsDir() {
		return usageError{fmt.Errorf("--report %s: give a folder that exists", c.folder)}
	}
	c.key, c.ConnectionString, c.Endpoint = cfg.Cosmos.Key.Reveal(), cfg.ServiceBus.ConnectionString.Reveal(), string(cfg.Cosmos.Endpoint)
	for _, spec := range cosmos.RelayContainers(document.EventContract{}, data, leases, parked) {
		properties := azcosmos.ContainerProperties{ID: spec.ID, PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{spec.PartitionKeyPath}, Kind: azcosmos.PartitionKeyKindHash, Version: 2}}
		if spec.TTL {
			properties.DefaultTimeToLive = new(int32(-1))
		}
		c.Containers = append(c.Containers, properties)
	}
	c.Scripted, c.Served = certify.NewMeter(http.DefaultClient), certify.NewMeter(http.DefaultClient)
	if c.Cosmos, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: c.Endpoint, Key: c.key, Options: azcore.ClientOptions{Transport: c.Scripted}}); err != nil {
		return err
	}
	options := &admin.ClientOptions{}
	if c.busAdmin != "" {
		redirect, err := azure.Redirect(c.busAdmin)
		if err != nil {
			return usageError{fmt.Errorf("--servicebus-admin: %w", err)}
		}
		options.PerCallPolicies = []policy.Policy{redirect}
	}
	if c.Admin, err = admin.NewClientFromConnectionString(c.ConnectionString, options); err != nil {
		return err
	}
	if c.resourceID != "" {
		identity, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return err
		}
		c.Merge = certify.Merger(identity, c.resourceID, nil)
	}
	c.API, c.Version = c.withAPI, console.Version()
	c.Relay = func(name, instance string) *exec.Cmd { return relayWith(c.settings(name, name+"-"+instance)) }
	c.Documents = func(ctx context.Context, name string, visit func(raw []byte) error) error {
		return emulatedCosmos{}.documents(ctx, &endpoints{CosmosEndpoint: c.Endpoint, CosmosKey: c.key, Database: name, Container: data, Parked: parked}, visit)
	}
	c.Log = func(format string, args ...any) {
		_, _ = fmt.Fprintf(c.out, "%s  %s\n", time.Now().Format(time.TimeOnly), console.Clean(fmt.Sprintf(format, args...)))
	}
	return nil
}

func (c *certifying) confirm(format string, args ...any) error {
	err := console.Prompt{In: os.Stdin, Out: c.errOut, Yes: c.yes}.Confirm(fmt.Sprintf(format, args...))
	if errors.Is(err, console.ErrNotAsked) {
		return usageError{fmt.Errorf("%w: give --yes", err)}
	}
	return err
}

func (c *certifying) removeLeftovers(ctx context.Context) error {
	names, err := c.Leftovers(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	if err := c.confirm("The databases and topics of these runs are removed. No run may be active.\n%s", strings.Join(names, "\n")); err != nil {
		return err
	}
	for _, name := range names {
		err = errors.Join(err, c.Remove(ctx, name))
		_, _ = fmt.Fprintf(c.out, "removed %s\n", name)
	}
	return err
}

// settings returns the environment of API and relays: addresses and timings are those of the caller.
func (c *certifying) settings(name, instance string) []string {
	var kept []string
	for _, pair := range c.environ {
		for _, prefix := range []string{"COSMOS_", "SERVICEBUS_", "LEASE_", "RELAY_POLL_", "PLAINTEXT_HOSTS"} {
			if strings.HasPrefix(pair, config.Prefix+prefix) {
				kept = append(kept, pair)
			}
		}
	}
	return append(kept, "FEEDBOX_COSMOS_DATABASE="+name, "FEEDBOX_COSMOS_CONTAINER="+data, "FEEDBOX_COSMOS_LEASES="+leases, "FEEDBOX_COSMOS_PARKED="+parked,
		"FEEDBOX_SERVICEBUS_TOPIC="+name, "FEEDBOX_SERVICEBUS_TOPICS=", "FEEDBOX_INSTANCE="+instance, "FEEDBOX_LOG_LEVEL=error",
		"FEEDBOX_API_LISTEN=127.0.0.1:0", "FEEDBOX_API_RATE_LIMIT=0", "FEEDBOX_API_DRAIN_DELAY=0s", "FEEDBOX_API_TOKEN_KEYS="+base64.StdEncoding.EncodeToString([]byte(tokenKey)))
}

// withAPI implements certify.Options.
func (c *certifying) withAPI(ctx context.Context, name string, use func(ctx context.Context, base string) error) error {
	cfg, err := config.LoadAPI(c.settings(name, ""))
	if err != nil {
		return err
	}
	log, err := telemetry.NewLogger(c.errOut, &telemetry.LogOptions{Level: cfg.Log.Level, NoColor: true})
	if err != nil {
		return err
	}
	sockets, err := wiring.Listen(ctx, cfg.Listen, cfg.OpsListen)
	if err != nil {
		return err
	}
	defer func() { _ = sockets.Close() }() // the API has closed them, if it has started
	app := fx.New(wiring.API(cfg, wiring.Params{Sockets: sockets, Log: log, Version: console.Version(), CosmosTransport: c.Served}))
	api := func(ctx context.Context, started func()) error { return wiring.Run(ctx, app, started) }
	return runAll(ctx, []func(ctx context.Context, started func()) error{api}, func(ctx context.Context) error {
		return use(ctx, "http://"+sockets.API.Addr().String())
	})
}

// secrets returns everything that the report must not contain.
func (c *certifying) secrets() []string {
	secrets := []string{c.key, c.ConnectionString}
	for part := range strings.SplitSeq(c.ConnectionString, ";") {
		if name, value, _ := strings.Cut(part, "="); strings.EqualFold(strings.TrimSpace(name), "SharedAccessKey") {
			secrets = append(secrets, value)
		}
	}
	return secrets
}
