package infra

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"feedbox/tests/infra/bicep"
)

// world has all inputs of the checks.
type world struct {
	// texts has the files by path below the root of the repository.
	texts map[string]string
	// source has the text of all Go files of the service, for checks that compare with it.
	source map[string]string
	// files has the parsed Bicep files by path.
	files map[string]*bicep.File
	// dev and prod are the deployments of the running service; first is the very first
	// deployment, with the placeholder. console is prod with the operations page, the
	// identity of KEDA, three containers, the virtual network and ranges of addresses; private is prod with the network only;
	// several is private with three namespaces.
	dev, prod, first, console, private, several []bicep.Resource
}

// roots lists the folders and files to read.
var roots = []string{"bicep", "azure.yaml", "Dockerfile", devDockerfile, ".dockerignore", ".github"}

// sources lists the folders in which the service logs and queries.
var sources = []string{"application", "changefeed", "infrastructure/store/cosmos", "infrastructure/relay/monitor", "infrastructure/wiring", "infrastructure/httpapi"}

func readTexts(root string, below []string, keep func(string) bool) (map[string]string, error) {
	texts := map[string]string{}
	for _, start := range below {
		err := filepath.WalkDir(filepath.Join(root, start), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !keep(file) {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, file)
			texts[filepath.ToSlash(relative)] = string(text)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", start, err)
		}
	}
	return texts, nil
}

// newWorld parses and evaluates texts. An error counts as a finding.
func newWorld(texts, source map[string]string) (*world, error) {
	w := &world{texts: texts, source: source, files: map[string]*bicep.File{}}
	for name, text := range texts {
		if ext := path.Ext(name); ext != ".bicep" && ext != ".bicepparam" {
			continue
		}
		f, err := parse(name, text)
		if err != nil {
			return nil, err
		}
		w.files[name] = f
	}
	environ := map[string]string{
		"AZURE_ENV_NAME": "e", "AZURE_LOCATION": "westeurope", "ALERT_EMAIL": "a@contoso.com",
		"FEEDBOX_AUTH_AUDIENCE": "22222222-2222-2222-2222-222222222222", "FEEDBOX_API_TOKEN_KEYS": strings.Repeat("A", 43) + "=",
	}
	for _, deployment := range []struct {
		into       *[]bicep.Resource
		parameters string
		environ    map[string]string
	}{
		{&w.first, "bicep/main.bicepparam", nil},
		{&w.dev, "bicep/main.bicepparam", map[string]string{"SERVICE_API_RESOURCE_EXISTS": "true", "SERVICE_RELAY_RESOURCE_EXISTS": "true"}},
		{&w.prod, "bicep/prod.bicepparam", map[string]string{
			"FEEDBOX_DEPLOYED": "true", "FEEDBOX_IMAGE": "r.azurecr.io/feedbox@sha256:0", "FAILOVER_LOCATION": "northeurope",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
		}},
		{&w.console, "bicep/prod.bicepparam", map[string]string{
			"FEEDBOX_DEPLOYED": "true", "FEEDBOX_IMAGE": "r.azurecr.io/feedbox@sha256:0", "FEEDBOX_CONSOLE": "true", "FEEDBOX_KEDA": "true", "FEEDBOX_MORE_CONTAINERS": "orders,invoices",
			"FEEDBOX_PRIVATE_NETWORK": "true", "FEEDBOX_CLIENT_IPS": "203.0.113.0/24", "FEEDBOX_OPERATOR_IPS": "198.51.100.7/32,198.51.100.64/26", "FEEDBOX_EGRESS_IPS": "192.0.2.0/28",
		}},
		{&w.private, "bicep/prod.bicepparam", map[string]string{"FEEDBOX_DEPLOYED": "true", "FEEDBOX_IMAGE": "r.azurecr.io/feedbox@sha256:0", "FEEDBOX_PRIVATE_NETWORK": "true"}},
		{&w.several, "bicep/prod.bicepparam", map[string]string{"FEEDBOX_DEPLOYED": "true", "FEEDBOX_IMAGE": "r.azurecr.io/feedbox@sha256:0", "FEEDBOX_PRIVATE_NETWORK": "true", "FEEDBOX_NAMESPACES": "3"}},
	} {
		all := map[string]string{}
		for _, from := range []map[string]string{environ, deployment.environ} {
			for name, value := range from {
				all[name] = value
			}
		}
		resources, err := bicep.Deploy(w.files, deployment.parameters, all, standins)
		if err != nil {
			return nil, err
		}
		*deployment.into = resources
	}
	return w, nil
}

// parsed caches parsed files by name and text, because a seeded mistake changes only one
// of many files. The parsed files are immutable.
var parsed sync.Map

func parse(name, text string) (*bicep.File, error) {
	key := name + "\x00" + text
	if f, ok := parsed.Load(key); ok {
		return f.(*bicep.File), nil
	}
	f, err := bicep.Parse(name, text)
	if err == nil {
		parsed.Store(key, f)
	}
	return f, err
}

// standins has the values that only Azure knows.
var standins = bicep.Standins{
	"Microsoft.ManagedIdentity/userAssignedIdentities": map[string]any{"principalId": "principal of {name}", "clientId": "client"},
	"Microsoft.ContainerRegistry/registries":           map[string]any{"loginServer": "r.azurecr.io"},
	"Microsoft.DocumentDB/databaseAccounts":            map[string]any{"documentEndpoint": "https://a.documents.azure.com:443/"},
	"Microsoft.ServiceBus/namespaces":                  map[string]any{"serviceBusEndpoint": "https://{name}.servicebus.windows.net:443/"},
	"Microsoft.KeyVault/vaults":                        map[string]any{"vaultUri": "https://v.vault.azure.net/"},
	"Microsoft.App/managedEnvironments":                map[string]any{"defaultDomain": "d.westeurope.azurecontainerapps.io"},
	"Microsoft.App/containerApps": map[string]any{"template": map[string]any{
		"containers": []any{map[string]any{"image": "r.azurecr.io/feedbox@sha256:1"}},
	}},
}

// IndexingPolicies returns the indexing policies of the deployed containers as JSON, by the
// name of the container. Tests outside this package create their containers with them, so that
// a query without its index fails there. It reads the checkout around the working directory.
var IndexingPolicies = sync.OnceValues(func() (map[string]string, error) {
	top, err := filepath.Abs(".")
	for err == nil && top != filepath.Dir(top) {
		if _, missing := os.Stat(filepath.Join(top, cosmosFile)); missing == nil {
			break
		}
		top = filepath.Dir(top)
	}
	if err != nil {
		return nil, err
	}
	texts, err := readTexts(top, roots[:1], func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	w, err := newWorld(texts, nil)
	if err != nil {
		return nil, err
	}
	policies := map[string]string{}
	for _, r := range w.prod {
		if r.Type != container {
			continue
		}
		policy, err := json.Marshal(at(r.Body, "properties", "resource", "indexingPolicy"))
		if err != nil {
			return nil, fmt.Errorf("encode the indexing policy of %v: %w", r.Body["name"], err)
		}
		policies[text(r.Body["name"])] = string(policy)
	}
	return policies, nil
})

// running returns the two deployments of the service by name.
func (w *world) running() map[string][]bicep.Resource {
	return map[string][]bicep.Resource{"dev": w.dev, "prod": w.prod}
}

// each calls visit for every resource of a type in both deployments, and reports if there
// is none.
func (w *world) each(kind string, report func(string, ...any), visit func(bicep.Resource)) {
	for name, resources := range w.running() {
		found := false
		for _, r := range resources {
			if r.Type == kind {
				found = true
				visit(r)
			}
		}
		if !found {
			report("%s deploys no %s", name, kind)
		}
	}
}

// bicepFiles returns the sorted paths of the .bicep files.
func (w *world) bicepFiles() []string {
	var names []string
	for name := range w.files {
		if strings.HasSuffix(name, ".bicep") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// at follows steps into objects (by name) and lists (by int index). It returns nil if a
// step does not exist.
func at(v any, steps ...any) any {
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

// resource is a deployed resource.
type resource = bicep.Resource

// check is one rule.
type check struct {
	// name states the rule.
	name string
	run  func(w *world, report func(format string, args ...any))
	// seeds are mistakes that the check must find.
	seeds []seed
}

// seed is a mistake: in file, old is replaced by new. old must exist in file; if old is
// empty, file is added.
type seed struct{ file, old, new string }

// checks returns all rules by family.
func checks() []check {
	var all []check
	for _, family := range [][]check{
		databaseChecks, messagingChecks, rightsChecks, appChecks, consoleChecks, networkChecks, settingsChecks, wiringChecks, watchingChecks, azdChecks, kubernetesChecks, kubernetesPlaceChecks, kubernetesPairChecks, imageChecks, workflowChecks,
	} {
		all = append(all, family...)
	}
	return all
}

// want reports a value that differs from the wanted one.
func want(report func(string, ...any), what string, got, wanted any) {
	if got != wanted {
		report("%s is %v, it has to be %v", what, got, wanted)
	}
}
