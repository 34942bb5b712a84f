package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// model is a configuration of a module: the values of its constants, and the rules to check.
type model struct {
	name, module string
	nightly      bool   // too large for CI
	spec         string // default Spec
	symmetric    bool
	invariants   string
	properties   string
	expect       string // the rule that must be violated; "" = all hold
	constants    string // name = expression, one a line
}

const leaseRules = "OneOwner CheckpointSafe KeyOrder Tiled Covered"

const relayRules = "NoSilentLoss KeyOrder OnlyDrainer ParkedOnce NoDuplicate Evidence"

// events are one of key j, then a transaction of two of key k, then another one of key k.
const events = `
Txs = <<<<1>>, <<2, 3>>, <<4>>>>
Key = <<"j", "k", "k", "k">>
Poison = {3}
MinFailing = 2
`

const commitRules = "Once StoredIsStored RefusedIsNot UnknownIsHonest Together"

// one is a single lease; chain and fork are leases that split.
const (
	one = `
Leases = {"P"}
First = "P"
Kids = [l \in {"P"} |-> {}]
Range = [l \in {"P"} |-> {"a"}]
`
	tree = `
Leases = {"P", "A", "B", "C", "D"}
First = "P"
Kids = [P |-> {"A", "B"}, A |-> {"C", "D"}, B |-> {}, C |-> {}, D |-> {}]
Range = [P |-> {"a", "b", "c"}, A |-> {"a", "b"}, B |-> {"c"}, C |-> {"a"}, D |-> {"b"}]
`
	fork = `
Leases = {"P", "A", "B"}
First = "P"
Kids = [P |-> {"A", "B"}, A |-> {}, B |-> {}]
Range = [P |-> {"a", "b"}, A |-> {"a"}, B |-> {"b"}]
`
)

var models = []model{
	{
		name: "lease/window", module: "Lease", symmetric: true, invariants: leaseRules,
		constants: one + `
Hosts = {h1, h2}
Log = <<"a">>
Expiry = 2
Margin = 1
MaxFaults = 1
Faults = {"suspend", "crash", "operator", "foreign"}
Lossy = TRUE
Prompt = FALSE`,
	},
	{
		name: "lease/window, two faults", module: "Lease", nightly: true, symmetric: true, invariants: leaseRules,
		constants: one + `
Hosts = {h1, h2}
Log = <<"a">>
Expiry = 2
Margin = 1
MaxFaults = 2
Faults = {"suspend", "crash", "operator", "foreign"}
Lossy = TRUE
Prompt = FALSE`,
	},
	{
		name: "lease/fork", module: "Lease", nightly: true, symmetric: true, invariants: leaseRules,
		constants: fork + `
Hosts = {h1, h2}
Log = <<"a", "b">>
Expiry = 1
Margin = 0
MaxFaults = 0
Faults = {}
Lossy = FALSE
Prompt = FALSE`,
	},
	{
		name: "lease/splits", module: "Lease", spec: "Splits", symmetric: true, invariants: leaseRules,
		constants: tree + `
Hosts = {h1, h2, h3}
Log = <<"a">>
Expiry = 1
Margin = 0
MaxFaults = 0
Faults = {}
Lossy = FALSE
Prompt = TRUE`,
	},
	{
		name: "lease/progress", module: "Lease", spec: "Fair", invariants: leaseRules, properties: "Delivered",
		constants: one + `
Hosts = {h1, h2}
Log = <<"a", "a">>
Expiry = 2
Margin = 0
MaxFaults = 1
Faults = {"crash", "operator"}
Lossy = FALSE
Prompt = TRUE`,
	},
	{
		name: "relay/faults", module: "Relay", invariants: relayRules,
		constants: events + `
MaxSends = 2
MaxCrashes = 1
MaxCuts = 0
MaxRestarts = 0
MaxSkips = 1
MaxDrops = 0
Cuts = {}
Noticed = TRUE
InWindow = TRUE`,
	},
	{
		name: "relay/cuts", module: "Relay", invariants: relayRules,
		constants: events + `
MaxSends = 0
MaxCrashes = 0
MaxCuts = 1
MaxRestarts = 0
MaxSkips = 0
MaxDrops = 1
Cuts = {"failover", "restore", "recreate"}
Noticed = TRUE
InWindow = TRUE`,
	},
	{
		name: "relay/cuts, restarts and skips", module: "Relay", nightly: true, invariants: relayRules,
		constants: events + `
MaxSends = 0
MaxCrashes = 0
MaxCuts = 1
MaxRestarts = 1
MaxSkips = 1
MaxDrops = 1
Cuts = {"failover", "restore", "recreate"}
Noticed = TRUE
InWindow = TRUE`,
	},
	{
		name: "relay/frozen", module: "Relay", invariants: relayRules,
		constants: events + `
MaxSends = 1
MaxCrashes = 0
MaxCuts = 0
MaxRestarts = 0
MaxSkips = 0
MaxDrops = 0
Cuts = {}
Noticed = TRUE
InWindow = TRUE`,
	},
	{
		name: "relay/progress", module: "Relay", spec: "Fair", properties: "EverySent ProbeEnds",
		constants: events + `
MaxSends = 1
MaxCrashes = 0
MaxCuts = 0
MaxRestarts = 0
MaxSkips = 0
MaxDrops = 0
Cuts = {"failover"}
Noticed = TRUE
InWindow = TRUE`,
	},
	{
		name: "relay/probe", module: "Relay", spec: "Fair", properties: "EverySent ProbeEnds",
		constants: `
Txs = <<<<1>>, <<2>>>>
Key = <<"j", "k">>
Poison = {}
MinFailing = 2
MaxSends = 3
MaxCrashes = 0
MaxCuts = 0
MaxRestarts = 0
MaxSkips = 0
MaxDrops = 0
Cuts = {"failover"}
Noticed = TRUE
InWindow = TRUE`,
	},
	{
		name: "relay/progress after a failover", module: "Relay", nightly: true, spec: "Fair", properties: "EverySent ProbeEnds",
		constants: events + `
MaxSends = 1
MaxCrashes = 0
MaxCuts = 1
MaxRestarts = 0
MaxSkips = 0
MaxDrops = 0
Cuts = {"failover"}
Noticed = TRUE
InWindow = TRUE`,
	},
	{
		name: "commit/with events", module: "Commit", invariants: commitRules,
		constants: `
Clients = {1, 2}
Attempts = 2
Commits = 2
WithEvent = TRUE`,
	},
	{
		name: "commit/three attempts", module: "Commit", nightly: true, invariants: commitRules,
		constants: `
Clients = {1, 2}
Attempts = 3
Commits = 1
WithEvent = TRUE`,
	},
	{
		name: "commit/without events", module: "Commit", invariants: commitRules, expect: "RefusedIsNot",
		constants: `
Clients = {1, 2}
Attempts = 2
Commits = 1
WithEvent = FALSE`,
	},
}

// mutant is a change of a module that must violate a rule. mutants.txt has all of them.
type mutant struct {
	name     string
	model    string // the configuration that must fail
	expect   string // the rule
	replaced [][2]string
}

// readMutants reads blocks of lines: "== name", "config: ...", "violates: ...", and pairs of
// a "-" line with the text to replace and a "+" line with the new text. Other lines explain.
func readMutants(file string) (mutants []mutant, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var m *mutant
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		name, begins := strings.CutPrefix(line, "== ")
		switch {
		case begins:
			mutants = append(mutants, mutant{name: name})
			m = &mutants[len(mutants)-1]
		case m == nil:
		case strings.HasPrefix(line, "config: "):
			m.model = line[len("config: "):]
		case strings.HasPrefix(line, "violates: "):
			m.expect = line[len("violates: "):]
		case strings.HasPrefix(line, "-"):
			m.replaced = append(m.replaced, [2]string{line[1:]})
		case strings.HasPrefix(line, "+") && len(m.replaced) > 0:
			m.replaced[len(m.replaced)-1][1] = line[1:]
		}
	}
	return mutants, nil
}

func (m *mutant) check(sources map[string]string) (c check, err error) {
	i := slices.IndexFunc(models, func(o model) bool { return o.name == m.model })
	if i < 0 || m.expect == "" || len(m.replaced) == 0 {
		return c, fmt.Errorf("mutant %s: it needs a known config, a rule and a change", m.name)
	}
	c = check{name: "mutant " + m.name, model: models[i], source: sources[models[i].module], expect: m.expect}
	for _, change := range m.replaced {
		if n := strings.Count(c.source, change[0]); n != 1 {
			return c, fmt.Errorf("mutant %s: %q is %d times in %s.tla, want once", m.name, change[0], n, models[i].module)
		}
		c.source = strings.Replace(c.source, change[0], change[1], 1)
	}
	return c, nil
}
