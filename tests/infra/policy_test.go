package infra

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/operator/plan"
	"feedbox/tests/infra/bicep"
)

const root = "../.."

func repository(t *testing.T) (texts, source map[string]string) {
	t.Helper()
	texts, err := readTexts(root, roots, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	source, err = readTexts(root, sources, func(file string) bool {
		return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go")
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts, source
}

func findings(c check, w *world) (found []string) {
	c.run(w, func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) })
	return found
}

// TestPolicy checks the deployment against every rule.
func TestPolicy(t *testing.T) {
	texts, source := repository(t)
	w, err := newWorld(texts, source)
	if err != nil {
		t.Fatalf("the deployment cannot be evaluated: %v", err)
	}
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			for _, f := range findings(c, w) {
				t.Error(f)
			}
		})
	}
}

// TestEveryCheckFindsItsMistakes seeds one mistake at a time. The check itself must find
// it; a failed evaluation does not count. TestEvaluationFindsMistakes tests those.
func TestEveryCheckFindsItsMistakes(t *testing.T) {
	texts, source := repository(t)
	seeds := 0
	for _, c := range checks() {
		if len(c.seeds) == 0 {
			t.Errorf("%s: no seeded mistake shows that it can fail", c.name)
		}
		for i, s := range c.seeds {
			seeds++
			t.Run(fmt.Sprintf("%s/%d", c.name, i+1), func(t *testing.T) {
				t.Parallel()
				w, err := newWorld(sow(t, texts, s), source)
				if err != nil {
					t.Fatalf("this mistake breaks the evaluation: %v", err)
				}
				found := findings(c, w)
				if len(found) == 0 {
					t.Errorf("%q in place of %q in %s was not found", s.new, s.old, s.file)
				}
				for _, f := range found {
					if strings.Contains(f, "%!") {
						t.Errorf("a finding is not readable: %s", f)
					}
				}
			})
		}
	}
	t.Logf("%d checks, %d seeded mistakes", len(checks()), seeds)
}

// TestEvaluationFindsMistakes seeds mistakes that make a deployment impossible.
func TestEvaluationFindsMistakes(t *testing.T) {
	texts, source := repository(t)
	for name, tc := range map[string]struct {
		seed seed
		want string
	}{
		"unknown module":              {seed{"bicep/main.bicep", "'modules/alerts.bicep'", "'modules/alarms.bicep'"}, "there is no file"},
		"parameter not given":         {seed{"bicep/main.bicep", "    topicName: servicebus[0].outputs.topicName\n", ""}, "is missing"},
		"parameter not there":         {seed{"bicep/main.bicep", "    identityClientId: api", "    clientId: api"}, "has no parameter clientId"},
		"parameter of other type":     {seed{"bicep/main.bicep", "eventTtlHours int = 240", "eventTtlHours string = '240'"}, "is string, not int"},
		"output not there":            {seed{busFile, "output host string", "output hostName string"}, "there is no host"},
		"unknown in a parameter file": {seed{"bicep/main.bicepparam", "param alertEmail", "param alertEMail"}, "has no parameter alertEMail"},
		"required variable of azd":    {seed{"bicep/main.bicepparam", "'AZURE_LOCATION'", "'AZURE_REGION'"}, "AZURE_REGION is not set"},
		"a key is listed":             {seed{cosmosFile, "account.properties.documentEndpoint", "account.listKeys().primaryMasterKey"}, "methods are not evaluated"},
		"property only a guess knows": {seed{cosmosFile, "account.properties.documentEndpoint", "account.properties.endpoint"}, "there is no endpoint"},
		"module of a registry":        {seed{"bicep/main.bicep", "'modules/registry.bicep'", "'br/public:avm/res/container-registry/registry:0.12.0'"}, "there is no file"},
		"a container twice":           {seed{"bicep/main.bicep", "leases: '${name}-leases'", "leases: 'leases'"}, "leases is defined twice"},
		"scope of nothing":            {seed{apiFile, "scope: app\n", "scope: other\n"}, "other is not declared"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := newWorld(sow(t, texts, tc.seed), source); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// sow returns a copy of texts with the mistake.
func sow(t *testing.T, texts map[string]string, s seed) map[string]string {
	t.Helper()
	seeded := maps.Clone(texts)
	if s.old == "" {
		seeded[s.file] = s.new
		return seeded
	}
	if !strings.Contains(texts[s.file], s.old) {
		t.Fatalf("%s no longer contains %q: seed another mistake", s.file, s.old)
	}
	seeded[s.file] = strings.ReplaceAll(texts[s.file], s.old, s.new)
	return seeded
}

// feedbox plan prints the sizes as parameters of the deployment, which gets them.
func TestPlannedParametersAreThoseOfTheDeployment(t *testing.T) {
	for _, tc := range []struct {
		changes, containers int
		ttl                 time.Duration
	}{{5000, 1, 600 * time.Hour}, {100_000, 2, 24 * time.Hour}} {
		t.Run(fmt.Sprint(tc.changes), func(t *testing.T) { planned(t, float64(tc.changes), tc.containers, tc.ttl) })
	}
}

func planned(t *testing.T, changes float64, containers int, ttl time.Duration) {
	texts, source := repository(t)
	in := plan.Defaults()
	in.Changes, in.TopicGB, in.TTL = changes, 10, plan.Duration(ttl)
	p, err := plan.New(in)
	if err != nil {
		t.Fatal(err)
	}
	planned, err := p.BicepParam()
	if err != nil {
		t.Fatal(err)
	}
	kept := ""
	for line := range strings.Lines(texts["bicep/prod.bicepparam"]) {
		if name, _, _ := strings.Cut(line, " = "); !strings.Contains(planned, name+" = ") {
			kept += line
		}
	}
	texts["bicep/prod.bicepparam"] = kept + planned
	w, err := newWorld(texts, source)
	if err != nil {
		t.Fatalf("the planned deployment cannot be evaluated: %v\n%s", err, planned)
	}
	resources := map[string]bicep.Resource{}
	for _, r := range w.prod {
		resources[r.Type+" "+text(r.Body["name"])] = r
		if r.Type == namespace {
			resources[namespace] = r
		}
		if slices.Contains([]string{"api", "relay"}, process(r)) && !slices.Contains(environment(r), variable{name: "FEEDBOX_EVENT_TTL", value: fmt.Sprintf("%.0fh", ttl.Hours())}) {
			t.Errorf("the %s does not get the TTL of events: %v", process(r), environment(r))
		}
	}
	for what, pair := range map[string][2]any{
		"throughput of data":   {at(resources[container+" data"].Body, "properties", "options", "autoscaleSettings", "maxThroughput"), math.Ceil(p.RequestUnits/1000/float64(containers)) * 1000},
		"throughput of leases": {at(resources[container+" leases"].Body, "properties", "options", "autoscaleSettings", "maxThroughput"), max(math.Ceil(p.LeaseUnits/1000/float64(containers)), 1) * 1000},
		"containers":           {len(relayed(w.prod, t.Errorf)), containers},
		"messaging units":      {at(resources[namespace].Body, "sku", "capacity"), min(p.UnitsOfNamespace, 16)},
		"size of the topic":    {at(resources[topic+" contacts"].Body, "properties", "maxSizeInMegabytes"), 10 << 10},
	} {
		if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
}
