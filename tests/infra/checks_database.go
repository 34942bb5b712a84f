package infra

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"feedbox/infrastructure/process/config"
	"feedbox/tests/infra/bicep"
)

const (
	cosmosFile = "bicep/modules/cosmos.bicep"
	account    = "Microsoft.DocumentDB/databaseAccounts"
	container  = account + "/sqlDatabases/containers"
)

func accountSetting(name string, wanted any, path ...any) func(*world, func(string, ...any)) {
	return func(w *world, report func(string, ...any)) {
		w.each(account, report, func(r bicep.Resource) {
			want(report, name, at(r.Body, append([]any{"properties"}, path...)...), wanted)
		})
	}
}

// containers calls visit for the three containers of each deployment.
func containers(w *world, report func(string, ...any), visit func(name string, resource map[string]any)) {
	for deployment, resources := range w.running() {
		var names []string
		for _, r := range resources {
			if r.Type == container {
				name := text(r.Body["name"])
				names = append(names, name)
				resource, _ := at(r.Body, "properties", "resource").(map[string]any)
				want(report, "the id of container "+name, resource["id"], r.Body["name"])
				visit(name, resource)
			}
		}
		if slices.Sort(names); !slices.Equal(names, []string{"data", "leases", "parked"}) {
			report("%s has the containers %v", deployment, names)
		}
	}
}

var databaseChecks = []check{
	{
		"Cosmos DB accepts no keys", accountSetting("disableLocalAuth", true, "disableLocalAuth"),
		[]seed{{cosmosFile, "disableLocalAuth: true", "disableLocalAuth: !production"}, {cosmosFile, "    disableLocalAuth: true\n", ""}},
	},
	{
		"keys cannot change metadata", accountSetting("disableKeyBasedMetadataWriteAccess", true, "disableKeyBasedMetadataWriteAccess"),
		[]seed{{cosmosFile, "disableKeyBasedMetadataWriteAccess: true", "disableKeyBasedMetadataWriteAccess: false"}},
	},
	{
		"Cosmos DB speaks TLS 1.2 at least", accountSetting("minimalTlsVersion", "Tls12", "minimalTlsVersion"),
		[]seed{{cosmosFile, "'Tls12'", "'Tls11'"}},
	},
	{
		"consistency is Session", accountSetting("the consistency", "Session", "consistencyPolicy", "defaultConsistencyLevel"),
		[]seed{{cosmosFile, "'Session'", "'Eventual'"}},
	},
	{
		"backup is continuous", accountSetting("backupPolicy.type", "Continuous", "backupPolicy", "type"),
		[]seed{{cosmosFile, "type: 'Continuous'", "type: 'Periodic'"}},
	},
	{
		"one region writes", accountSetting("enableMultipleWriteLocations", false, "enableMultipleWriteLocations"),
		[]seed{{cosmosFile, "enableMultipleWriteLocations: false", "enableMultipleWriteLocations: twoRegions"}},
	},
	{
		"dev is serverless, prod scales itself", serverless,
		[]seed{
			{cosmosFile, "production ? [] : [ { name: 'EnableServerless' } ]", "[]"},
			{cosmosFile, "production ? { autoscaleSettings: { maxThroughput: 1000 } } : {}", "{ throughput: 400 }"},
		},
	},
	{
		"the containers have their partition keys", partitionKeys,
		[]seed{
			{cosmosFile, "paths: [ '/id' ]", "paths: [ '/partitionKey' ]"},
			{cosmosFile, "paths: [ '/partitionKey' ]", "paths: [ '/pk' ]"},
			{cosmosFile, "version: 2", "version: 1"},
		},
	},
	{
		"only documents with a ttl of their own expire", timeToLive,
		[]seed{
			{cosmosFile, "defaultTtl: -1", "defaultTtl: 864000"},
			{cosmosFile, "      id: c.leases\n", "      id: c.leases\n      defaultTtl: 3600\n"},
			{cosmosFile, "      id: c.parked\n", "      id: c.parked\n      defaultTtl: -1\n"},
		},
	},
	{
		"several containers: each has all that one has, and the relay reads it", severalContainers,
		[]seed{
			{cosmosFile, "defaultTtl: -1", "defaultTtl: c.data == 'data' ? -1 : null"},
			{cosmosFile, "[for c in containers: {\n  parent: database\n  name: c.parked", "[for c in skip(containers, 1): {\n  parent: database\n  name: c.parked"},
			{rolesFile, "scope: '${collections}/${c.leases}'", "scope: '${collections}/${containers[0].leases}'"},
			{rolesFile, "${containers[0].data}", "${containers[length(containers) - 1].data}"},
			{relayFile, "join(more, ',')", "join(more, ' ')"},
			{relayFile, "empty(more)", "!empty(more)"},
			{relayFile, "skip(containers, 1)", "skip(containers, 2)"},
			{"bicep/main.bicep", "relayContainers: length(containers)", "relayContainers: 1"},
		},
	},
	{
		"what queries filter or sort by is indexed, and nothing else", indexes,
		[]seed{
			{cosmosFile, "          { path: '/data/version/?' }\n", ""},
			{cosmosFile, "          { path: '/position/?' }\n", ""},
			{cosmosFile, "{ path: '/type/?' }", "{ path: '/type/?' }\n          { path: '/data/email/?' }"},
			{cosmosFile, "          { path: '/*' }\n          { path: '/\"_etag\"/?' }\n", ""},
		},
	},
}

// relayed returns the configuration of the relay of a deployment for each container that it reads.
func relayed(resources []bicep.Resource, report func(string, ...any)) []*config.Relay {
	var environ []string
	for _, r := range resources {
		if process(r) == "relay" {
			for _, v := range environment(r) {
				environ = append(environ, v.name+"="+v.value)
			}
		}
	}
	cfg, err := config.LoadRelay(environ)
	if err != nil {
		report("the relay does not start: %v", err)
		return nil
	}
	return cfg.Containers()
}

// severalContainers compares each container of a deployment of three with the first one.
func severalContainers(w *world, report func(string, ...any)) {
	deployed, rights := map[string]map[string]any{}, granted(w, w.console, report)
	for _, r := range w.console {
		switch {
		case r.Type == container:
			want(report, "the id of a container", at(r.Body, "properties", "resource", "id"), r.Body["name"])
			deployed[text(r.Body["name"])] = r.Body
		case r.Symbol == "heartbeatMissing":
			want(report, "containers that have to report", at(r.Body, "properties", "criteria", "allOf", 0, "threshold"), int64(3))
		}
	}
	all := relayed(w.console, report)
	want(report, "the number of containers that the relay reads", len(all), 3)
	want(report, "the number of containers", len(deployed), 9)
	for _, one := range all {
		for first, name := range map[string]string{"data": one.Cosmos.Container, "leases": one.Cosmos.Leases, "parked": one.Cosmos.Parked} {
			got, wanted := at(deployed[name], "properties"), at(deployed[first], "properties")
			if name != first && fmt.Sprint(got) != strings.ReplaceAll(fmt.Sprint(wanted), "id:"+first+" ", "id:"+name+" ") {
				report("the container %q is %v, like %q it has to be %v", name, got, first, wanted)
			}
			if may := slices.Sorted(slices.Values(rights["relay"][name])); !slices.Equal(may, allowed["relay"][first]) {
				report("the relay may %v on %q", may, name)
			}
			if may := slices.Sorted(slices.Values(rights["api"][name])); name != "data" && len(may) > 0 || name == "data" && !slices.Equal(may, allowed["api"]["data"]) {
				report("the API may %v on %q", may, name)
			}
		}
	}
}

func serverless(w *world, report func(string, ...any)) {
	for _, r := range w.dev {
		if r.Type == account {
			want(report, "the capability of dev", at(r.Body, "properties", "capabilities", 0, "name"), "EnableServerless")
		}
		if r.Type == container && len(at(r.Body, "properties", "options").(map[string]any)) > 0 {
			report("container %v of serverless dev has throughput", r.Body["name"])
		}
	}
	for _, r := range w.prod {
		if r.Type == account {
			want(report, "the number of capabilities of prod", len(list(at(r.Body, "properties", "capabilities"))), 0)
			want(report, "zone redundancy of prod", at(r.Body, "properties", "locations", 0, "isZoneRedundant"), true)
			want(report, "automatic failover of prod", at(r.Body, "properties", "enableAutomaticFailover"), true)
		}
		if r.Type == container && number(at(r.Body, "properties", "options", "autoscaleSettings", "maxThroughput")) < 1000 {
			report("container %v of prod does not scale itself", r.Body["name"])
		}
	}
}

func partitionKeys(w *world, report func(string, ...any)) {
	paths := map[string]string{"data": "/partitionKey", "leases": "/id", "parked": "/partitionKey"}
	containers(w, report, func(name string, resource map[string]any) {
		key := resource["partitionKey"]
		want(report, "the partition key of "+name, at(key, "paths", 0), any(paths[name]))
		want(report, "the number of partition keys of "+name, len(list(at(key, "paths"))), 1)
		want(report, "the kind of the partition key of "+name, at(key, "kind"), "Hash")
		want(report, "the hash version of "+name, at(key, "version"), int64(2))
	})
}

func timeToLive(w *world, report func(string, ...any)) {
	containers(w, report, func(name string, resource map[string]any) {
		var wanted any
		if name == "data" {
			wanted = int64(-1)
		}
		want(report, "defaultTtl of "+name, resource["defaultTtl"], wanted)
	})
}

var (
	queryText = regexp.MustCompile("SELECT [^\"`]*?FROM c ?(?:\"|`)?(?: \\+\\s*[\"`])?([^\"`]*)[\"`]")
	queryPath = regexp.MustCompile(`\bc((?:\.\w+)+)`)
)

// indexes compares the paths of the indexing policies with the queries in the code.
func indexes(w *world, report func(string, ...any)) {
	wanted := map[string]map[string]bool{"data": {}, "parked": {}, "leases": {}}
	for file, source := range w.source {
		if !strings.HasPrefix(file, "infrastructure/store/cosmos/") {
			continue
		}
		of := "data"
		if strings.Contains(file, "/parked/") {
			of = "parked"
		}
		for _, query := range queryText.FindAllStringSubmatch(source, -1) {
			for _, p := range queryPath.FindAllStringSubmatch(query[1], -1) {
				wanted[of][strings.ReplaceAll(p[1], ".", "/")] = true
			}
		}
	}
	if len(wanted["data"]) == 0 || len(wanted["parked"]) == 0 {
		report("found no queries in the code: %v", wanted)
	}
	containers(w, report, func(name string, resource map[string]any) {
		policy := resource["indexingPolicy"]
		want(report, "indexingMode of "+name, at(policy, "indexingMode"), "consistent")
		want(report, "the first excluded path of "+name, at(policy, "excludedPaths", 0, "path"), "/*")
		indexed := map[string]bool{}
		for _, included := range list(at(policy, "includedPaths")) {
			p := text(at(included, "path"))
			p = strings.TrimSuffix(strings.TrimSuffix(p, "/?"), "/*")
			if indexed[p] = true; !wanted[name][p] {
				report("%s indexes %s, by which no query filters or sorts", name, p)
			}
		}
		for p := range wanted[name] {
			// The service always indexes these two in consistent mode (Learn, Indexing policies).
			if !indexed[p] && p != "/id" && p != "/_ts" {
				report("%s does not index %s, by which a query filters or sorts", name, p)
			}
		}
	})
}
