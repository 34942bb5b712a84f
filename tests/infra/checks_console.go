package infra

import (
	"fmt"
	"slices"
	"strings"

	"feedbox/infrastructure/process/config"
)

const (
	pageFile = "bicep/modules/console.bicep"
	kedaFile = "bicep/modules/keda.bicep"
)

var consoleChecks = []check{
	{
		"the operations page and the identity of KEDA are deployed only if they are asked for", func(w *world, report func(string, ...any)) {
			for name, resources := range map[string][]resource{"first": w.first, "dev": w.dev, "prod": w.prod} {
				for _, r := range resources {
					if r.File == pageFile || r.File == kedaFile {
						report("%s deploys %s of %s", name, r.Symbol, r.File)
					}
				}
			}
		},
		[]seed{
			{"bicep/main.bicep", "param deployConsole bool = false", "param deployConsole bool = true"},
			{"bicep/main.bicep", "param deployKeda bool = false", "param deployKeda bool = true"},
		},
	},
	{
		"the identity of KEDA is its own, and may only query the leases, list the partitions and read the change feed, of each container", kedaRights,
		[]seed{
			{kedaFile, "containers/executeQuery'\n", "containers/executeQuery'\n          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace'\n"},
			{kedaFile, "containers/readChangeFeed'", "containers/items/read'"},
			{kedaFile, "scope: '${collections}/${c.leases}'\n", "scope: account.id\n"},
			{kedaFile, "roleDefinitionId: leaseReader.id\n    scope: '${collections}/${c.leases}'", "roleDefinitionId: leaseReader.id\n    scope: '${collections}/${c.data}'"},
			{kedaFile, "[for c in containers: {", "[for c in skip(containers, 1): {"},
			{kedaFile, "          'Microsoft.DocumentDB/databaseAccounts/readMetadata'\n", ""},
			{scaledYAML, "client id of id-keda-...", "client id of id-relay-..."},
			{kubernetes + "README.md", "system:serviceaccount:keda:keda-operator", "system:serviceaccount:keda:default"},
		},
	},
	{
		"the operations page is one process, asks for tokens of operators, and is reached over HTTPS only", consolePage,
		[]seed{
			{pageFile, "maxReplicas: 1", "maxReplicas: 2"},
			{pageFile, "allowInsecure: false", "allowInsecure: true"},
			{pageFile, "value: 'entra'", "value: 'none'"},
			{pageFile, "targetPort: pagePort", "targetPort: opsPort"},
			{pageFile, "[ 'console' ]", "[ 'console', '--actions' ]"},
			{pageFile, "type: 'Readiness'", "type: 'Liveness'"},
			{"bicep/main.bicep", "image: relay.outputs.image", "image: 'feedbox:latest'"},
		},
	},
	{
		"the identity of the operations page is its own, and may only read the database and pull", consoleRights,
		[]seed{
			{pageFile, "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"},
			{pageFile, "scope: '${account.id}/dbs/${databaseName}'", "scope: account.id"},
			{pageFile, "  scope: registry\n", ""},
			{pageFile, "7f951dda-4ed3-4680-a7ca-43fe172d538d", "8311e382-0749-4cb8-b61a-304f252e45ec"},
			{pageFile, "name: 'id-${name}'", "name: replace(name, 'ca-console', 'id-relay')"},
		},
	},
}

func consolePage(w *world, report func(string, ...any)) {
	found := false
	for _, r := range w.console {
		if r.Type != app || r.File != pageFile {
			continue
		}
		found = true
		want(report, "maxReplicas", at(template(r), "scale", "maxReplicas"), int64(1))
		want(report, "minReplicas", at(template(r), "scale", "minReplicas"), int64(1))
		container := at(template(r), "containers", 0)
		want(report, "image", at(container, "image"), "r.azurecr.io/feedbox@sha256:0")
		want(report, "arguments", len(list(at(container, "args"))), 1)
		want(report, "argument", at(container, "args", 0), "console")
		ingress := at(r.Body, "properties", "configuration", "ingress")
		want(report, "allowInsecure", at(ingress, "allowInsecure"), false)
		values := map[string]string{}
		for _, e := range environment(r) {
			values[e.name] = e.value
		}
		want(report, "FEEDBOX_CONSOLE_LISTEN", values["FEEDBOX_CONSOLE_LISTEN"], fmt.Sprintf(":%d", number(at(ingress, "targetPort"))))
		want(report, "FEEDBOX_AUTH", values["FEEDBOX_AUTH"], "entra")
		var environ []string
		for name, value := range values {
			environ = append(environ, name+"="+value)
		}
		if _, err := config.LoadConsole(environ); err != nil {
			report("the operations page does not start: %v", err)
		}
		probed := map[string]any{}
		for _, probe := range list(at(container, "probes")) {
			probed[text(at(probe, "type"))] = at(probe, "httpGet", "path")
		}
		if len(probed) != 3 || probed["Startup"] != "/livez" || probed["Liveness"] != "/livez" || probed["Readiness"] != "/readyz" {
			report("its probes are %v", probed)
		}
	}
	if !found {
		report("the operations page cannot be deployed")
	}
}

func consoleRights(w *world, report func(string, ...any)) {
	owners, accountID := map[string]string{}, ""
	for _, r := range w.console {
		switch r.Type {
		case account:
			accountID = r.ID
		case "Microsoft.ManagedIdentity/userAssignedIdentities":
			if owners[r.ID] != "" {
				report("an identity has two owners")
			}
			owners[r.ID] = r.File
		}
	}
	for _, r := range w.console {
		if r.File != pageFile {
			continue
		}
		role := text(at(r.Body, "properties", "roleDefinitionId"))
		role = role[strings.LastIndexByte(role, '/')+1:]
		switch r.Type {
		case roleAssignment:
			want(report, "role on the database", role, "00000000-0000-0000-0000-000000000001")
			want(report, "scope on the database", at(r.Body, "properties", "scope"), any(accountID+"/dbs/contacts"))
		case azureRole:
			want(report, "role on the registry", builtIn[role].name, "AcrPull")
			want(report, "scope on the registry", r.ScopeType, "Microsoft.ContainerRegistry/registries")
		}
	}
	if len(owners) != 4 {
		report("%d identities for three processes and KEDA", len(owners))
	}
}

// kedaRights compares with the rights that KEDA's scaler uses in TestKedaScalesByTheSumOfAllContainers.
func kedaRights(w *world, report func(string, ...any)) {
	rights := granted(w, w.console, report)["keda"]
	wanted := map[string][]string{}
	for _, c := range relayed(w.console, report) {
		wanted[c.Cosmos.Container], wanted[c.Cosmos.Leases] = []string{"readChangeFeed", "readMetadata"}, []string{"executeQuery"}
	}
	for scope, actions := range rights {
		if !slices.Equal(actions, wanted[scope]) {
			report("KEDA may %v on %q", actions, scope)
		}
	}
	if len(rights) != len(wanted) {
		report("KEDA has rights on %d containers, it needs %d", len(rights), len(wanted))
	}
	if !strings.Contains(w.texts[scaledYAML], "# fill in: client id of id-keda-...") || !strings.Contains(w.texts[kubernetes+"README.md"], "--subject system:serviceaccount:keda:keda-operator") {
		report("the scaled object does not use the identity of KEDA")
	}
}
