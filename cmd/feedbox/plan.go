package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator/plan"
	"feedbox/infrastructure/process/console"
)

// planFormat is the output of feedbox plan. It is a flag value.
type planFormat string

var planFormats = []planFormat{"table", "text", "json", "bicepparam"}

func (f *planFormat) Set(text string) error {
	if !slices.Contains(planFormats, planFormat(text)) {
		return fmt.Errorf("%q is no format: give table, text, json or bicepparam", text)
	}
	*f = planFormat(text)
	return nil
}

func (f *planFormat) String() string { return string(*f) }
func (*planFormat) Type() string     { return "table|text|json|bicepparam" }

func (p *program) planCommand() *cobra.Command {
	in, format := plan.Defaults(), planFormats[0]
	cmd := &cobra.Command{
		Use:   "plan --changes N",
		Short: "Calculate throughput, partitions, relays and cost of a load",
		Long: `Calculate the size of a deployment on Cosmos DB and Service Bus for a load: request
units, partitions, containers, messaging units, relays, the traffic of leases and polls,
limits of one key, times of recovery, and the cost of a month. It connects to nothing.

Every value has its assumption and its sources. A * marks a figure that no page of the
vendor confirms: check it, or give your own with a flag. It proposes a TTL of events,
because the TTL decides the storage. -o bicepparam prints parameters for
bicep/main.bicep with the given TTL.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("changes") {
				return usage(cmd, errors.New("--changes is missing: give the changes a second, on average"))
			}
			result, err := plan.New(in)
			if err != nil {
				return usage(cmd, err)
			}
			return p.writePlan(result, format)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&in.Changes, "changes", 0, "changes a second, on average")
	f.Float64Var(&in.Peak, "peak", in.Peak, "the busiest hour divided by the average")
	f.Float64Var(&in.Events, "events", in.Events, "events of a change")
	f.IntVar(&in.EventBytes, "event-bytes", in.EventBytes, "size of a stored event")
	f.IntVar(&in.StateBytes, "state-bytes", in.StateBytes, "size of a stored aggregate")
	f.IntVar(&in.Aggregates, "aggregates", 0, "number of aggregates (0 = unknown)")
	f.Var(&in.TTL, "ttl", "lifetime of events, such as 36h or 10d")
	f.BoolVar(&in.Versions, "versions", false, "relay reads the feed of all versions (FEEDBOX_COSMOS_FEED); --ttl may be 1m")
	f.IntVar(&in.Subscriptions, "subscriptions", in.Subscriptions, "subscriptions of the topic")
	f.IntVar(&in.Regions, "regions", in.Regions, "regions of the database")
	f.Var(&in.DuplicateWindow, "duplicate-window", "duplicate window of the topic")
	f.Var(&in.Takeover, "takeover", "time to take over leases (FEEDBOX_LEASE_EXPIRY)")
	f.Var(&in.PollBusy, "poll-busy", "pause between reads of a busy range (FEEDBOX_RELAY_POLL_BUSY)")
	f.Var(&in.Outage, "outage", "longest outage of relays or broker to survive")
	f.Float64Var(&in.Headroom, "headroom", in.Headroom, "factor on request units, for uneven partitions")
	f.Float64Var(&in.ChangeUnits, "change-units", 0, "measured request units of a change (0 = by the table)")
	f.Float64Var(&in.RelayRate, "relay-rate", in.RelayRate, "events a second of one relay")
	f.IntVar(&in.TopicGB, "topic-gb", in.TopicGB, "size of the topic")
	f.Float64Var(&in.UnitPrice, "unit-price", in.UnitPrice, "USD for a messaging unit and hour")
	f.VarP(&format, "output", "o", "output format")
	return cmd
}

func (p *program) writePlan(result *plan.Plan, format planFormat) error {
	switch format {
	case "json":
		return console.JSON(p.out, result)
	case "bicepparam":
		text, err := result.BicepParam()
		if err == nil {
			_, err = fmt.Fprint(p.out, text)
		}
		return console.Advise(err, "feedbox plan without -o shows what such a load needs")
	case "text":
		for _, line := range result.Lines {
			p.say(console.FormatTable, "%s: %s\n    %s", line.Name, line.Text, line.Assumption)
			for _, figure := range line.Figures {
				p.say(console.FormatTable, "    %s", figure)
			}
		}
		return nil
	}
	var sources []*plan.Figure
	table := console.NewTable("QUANTITY", "VALUE", "ASSUMPTION AND SOURCES")
	for _, line := range result.Lines {
		numbers := ""
		for _, figure := range line.Figures {
			if !slices.Contains(sources, figure) {
				sources = append(sources, figure)
			}
			numbers += fmt.Sprintf(" [%d]", slices.Index(sources, figure)+1)
			if figure.Assumed {
				numbers += "*"
			}
		}
		table.Row(line.Name, line.Text, line.Assumption+numbers)
	}
	if err := table.Write(p.out, ""); err != nil {
		return err
	}
	p.say(console.FormatTable, "\nSources; * is an assumption:")
	for i, figure := range sources {
		p.say(console.FormatTable, "[%d] %s", i+1, figure)
	}
	return nil
}
