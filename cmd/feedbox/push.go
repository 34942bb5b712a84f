package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"feedbox/infrastructure/consumer/push"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/wiring"
)

const (
	processPush operator.Process = "push"
	processFeed operator.Process = "feed"
)

func (p *program) pushCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push",
		Short: "Send events of a consumer to an HTTP endpoint until SIGTERM",
		Long: `Send events of a consumer to an HTTP endpoint as CloudEvents until SIGTERM, in
the order of their keys. It is a consumer for languages without a kit.

The answer decides: 2xx is done; 409, 410 and 422 dead-letter the event with the
text of the answer, or park it with the later ones of its key (FEEDBOX_PUSH_PARK); 429,
and 503 with Retry-After, pause all keys; 5xx and timeouts hold the key and are retried;
other 4xx hold it as faults of the set-up. --policies sets attempts, pauses, timeout,
statuses and the treatment of refused events by action. While the receiver is down, one
event at a time is tried. An event may be sent several times, with the same id.

The events come from FEEDBOX_BROKER. feedbox config print push lists all settings.`,
		Example: `  feedbox push --from billing --to https://shop.example/events
  FEEDBOX_PUSH_SECRET_FILE=/run/secrets/push feedbox push --from orders/billing --to https://shop.example/events`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.loadPush()
			if err != nil {
				return settingsOf(processPush, err)
			}
			return p.serve(cmd.Context(), processPush, cfg.Log, "", cfg.OpsListen, cfg, func(given wiring.Params) fx.Option { return wiring.Push(cfg, given) })
		},
	}
	p.overriding(cmd, "from", "FEEDBOX_PUSH_FROM", "subscription, group or queue URL")
	p.overriding(cmd, "policies", "FEEDBOX_PUSH_POLICIES", "JSON file with policies by action")
	p.receiverFlags(cmd)
	return cmd
}

func (p *program) feedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "feed",
		Short: "Send documents of a container to an HTTP endpoint until SIGTERM",
		Long: `Send the documents of a Cosmos DB container to an HTTP endpoint as CloudEvents until
SIGTERM: each change of a document in its latest version, in the order of the partition
keys. It is a change feed processor for any language. Processes with the same
FEEDBOX_FEED_PROCESSOR share the work by leases in FEEDBOX_COSMOS_LEASES.

Answers have the meaning that feedbox push --help lists, except that a refused document
holds its key (FEEDBOX_FEED_REFUSED=skip drops it). A checkpoint is written after 2xx.

feedbox config print feed lists all settings.`,
		Example: `  feedbox feed --container orders --to https://shop.example/orders
  feedbox feed --container orders --to https://shop.example/orders --mode batch`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.loadFeed()
			if err != nil {
				return settingsOf(processFeed, err)
			}
			return p.serve(cmd.Context(), processFeed, cfg.Log, "", cfg.OpsListen, cfg, func(given wiring.Params) fx.Option { return wiring.Feed(cfg, given) })
		},
	}
	p.overriding(cmd, "container", "FEEDBOX_COSMOS_CONTAINER", "container to read")
	p.receiverFlags(cmd)
	return cmd
}

func (p *program) loadPush() (*config.Push, error) {
	c, err := config.LoadPush(p.environ)
	return c, joinFaults(err, secretsFault(c.Receiver))
}

func (p *program) loadFeed() (*config.Feed, error) {
	c, err := config.LoadFeed(p.environ)
	return c, joinFaults(err, secretsFault(c.Receiver))
}

// secretsFault reports secrets that cannot sign. Package config does not know their form.
func secretsFault(r config.Receiver) error {
	if _, err := push.ParseSecrets(r.Secret.Reveal()); err != nil {
		return &config.Error{Faults: []config.Fault{{Variable: "FEEDBOX_PUSH_SECRET", Problem: "cannot be read: " + err.Error(), Hint: "write whsec_ and at least 24 bytes in base64"}}}
	}
	return nil
}

// settingsOf adds the command that shows the settings of process, which feedbox config print does not list
// without its name.
func settingsOf(process operator.Process, err error) error {
	return console.Advise(err, fmt.Sprintf("correct these variables; feedbox config print %s shows all of them", process))
}

func (p *program) receiverFlags(cmd *cobra.Command) {
	p.overriding(cmd, "to", "FEEDBOX_PUSH_TO", "URL of the receiver")
	p.overriding(cmd, "mode", "FEEDBOX_PUSH_MODE", "structured, binary or batch")
}

// overriding adds a flag that sets a variable, so that both are checked alike.
func (p *program) overriding(cmd *cobra.Command, name, variable, help string) {
	cmd.Flags().Func(name, help+" ("+variable+")", func(value string) error {
		p.environ = append(p.environ, variable+"="+value) // the last value of a name counts
		return nil
	})
}
