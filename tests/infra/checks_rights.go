package infra

import (
	"maps"
	"slices"
	"strings"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/cosmos/doctor"
	"feedbox/tests/infra/bicep"
)

const (
	rolesFile      = "bicep/modules/roles.bicep"
	roleDefinition = account + "/sqlRoleDefinitions"
	roleAssignment = account + "/sqlRoleAssignments"
	azureRole      = "Microsoft.Authorization/roleAssignments"
	actions        = account + "/"
	itemActions    = account + "/sqlDatabases/containers/"
)

// builtIn lists the roles of Azure that may be assigned, by id, with scope and identity.
var builtIn = map[string]struct{ name, scope, to string }{
	"7f951dda-4ed3-4680-a7ca-43fe172d538d": {"AcrPull", "Microsoft.ContainerRegistry/registries", "api relay"},
	"4633458b-17de-408a-b874-0445c86b69e6": {"Key Vault Secrets User", "Microsoft.KeyVault/vaults/secrets", "api"},
	"69a216fc-b8fb-44d8-bc22-1f3c2cd27a39": {"Azure Service Bus Data Sender", topic, "relay"},
}

// allowed lists all actions of each process by scope; "" is the account.
var allowed = map[string]map[string][]string{
	"api": {
		"":     {"readMetadata"},
		"data": {"executeQuery", "items/create", "items/read", "items/replace"},
	},
	"relay": {
		"":       {"readMetadata"},
		"data":   {"items/read", "readChangeFeed"},
		"leases": {"executeQuery", "items/create", "items/delete", "items/read", "items/replace"},
		"parked": {"executeQuery", "items/create", "items/delete", "items/read", "items/replace", "items/upsert"},
	},
}

var rightsChecks = []check{
	{
		"each process has exactly the rights on data that it uses", exactRights,
		[]seed{
			{rolesFile, "items/create'\n", "items/upsert'\n"},
			{rolesFile, "containers/readChangeFeed'", "containers/items/*'"},
			{rolesFile, "roleDefinitionId: feedRole.id", "roleDefinitionId: bookkeepingRole.id"},
			{rolesFile, "    roleDefinitionId: apiRole.id\n    scope: '${collections}/${containers[0].data}'", "    roleDefinitionId: apiRole.id\n    scope: account.id"},
			{rolesFile, "scope: '${collections}/${c.parked}'", "scope: '${collections}/${c.leases}'"},
			{rolesFile, "${databaseName}/colls'", "${databaseName}/containers'"},
			{rolesFile, "principalId: apiPrincipalId\n    roleDefinitionId: metadataRole.id", "principalId: relayPrincipalId\n    roleDefinitionId: metadataRole.id"},
		},
	},
	{
		"feedbox doctor names the roles that are deployed, and built-in ones that allow as much", doctorRoles,
		[]seed{
			{rolesFile, "roleName: 'Feedbox parking'", "roleName: 'Feedbox parked'"},
			{rolesFile, "roleDefinitionId: parkingRole.id", "roleDefinitionId: bookkeepingRole.id"},
		},
	},
	{
		"only allowed roles of Azure are assigned, where they belong", azureRoles,
		[]seed{
			{busFile, "69a216fc-b8fb-44d8-bc22-1f3c2cd27a39", "090c5cfd-751d-490a-894a-3ce6f1109419"},
			{busFile, "  scope: topic\n", "  scope: namespace\n"},
			{"bicep/main.bicep", "    relayPrincipalId: relayIdentity.outputs.principalId\n    workspaceId", "    relayPrincipalId: apiIdentity.outputs.principalId\n    workspaceId"},
			{rolesFile, "    principalType: 'ServicePrincipal'\n", ""},
			{vaultFile, "  scope: keys\n", "  scope: vault\n"},
			{vaultFile, "4633458b-17de-408a-b874-0445c86b69e6", "b86a8fe4-44ce-4948-aee5-eccb2c155cd7"}, // may write
		},
	},
	{
		"names of role assignments are stable and differ", roleNames,
		[]seed{{rolesFile, "guid('${collections}/${c.leases}', relayPrincipalId, 'feedbox-bookkeeper')", "'${c.leases}-bookkeeper'"}},
	},
	{
		"no key is listed and no local authentication is on", noKeys,
		[]seed{
			{cosmosFile, "output endpoint string = account.properties.documentEndpoint", "output endpoint string = account.properties.documentEndpoint // account.listKeys()"},
			{"bicep/modules/api.bicep", "{ name: 'FEEDBOX_LOG_FORMAT', value: 'json' }", "{ name: 'FEEDBOX_COSMOS_KEY', value: 'x' }"},
			{"bicep/modules/registry.bicep", "adminUserEnabled: false", "adminUserEnabled: true"},
			{"bicep/modules/registry.bicep", "anonymousPullEnabled: false", "anonymousPullEnabled: true"},
			{"bicep/modules/monitoring.bicep", "disableLocalAuth: true", "disableLocalAuth: false"},
		},
	},
	{
		"secrets are marked, never defaults and never outputs", secrets,
		[]seed{
			{vaultFile, "@secure()\n", ""},
			{"bicep/main.bicep", "param tokenKeys string", "param tokenKeys string = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='"},
			{apiFile, "secretRef: 'token-keys'", "value: tokenKeysUri"},
			{vaultFile, "output tokenKeysUri string = '${vault.properties.vaultUri}secrets/token-keys'", "output tokenKeysUri string = tokenKeys"},
			{apiFile, "keyVaultUrl: tokenKeysUri, identity: identityId", "value: tokenKeysUri"},
			{vaultFile, "enablePurgeProtection: production ? true : null", "enablePurgeProtection: null"},
			{vaultFile, "enableRbacAuthorization: true", "enableRbacAuthorization: false"},
		},
	},
}

// principals returns the identity of each role assignment, by the parameter with its object id.
func principals(w *world) map[string]string {
	to := map[string]string{}
	for _, d := range slices.Concat(w.files[rolesFile].All("resource"), w.files[busFile].All("resource"), w.files[vaultFile].All("resource")) {
		if d.Existing {
			continue
		}
		bicep.Walk(d.Value, func(n *bicep.Node) {
			if n.Kind != bicep.Property {
				return
			}
			if key, _ := n.Kids[0].Literal(); key == "principalId" {
				to[d.Name] = strings.TrimSuffix(n.Kids[1].Text, "PrincipalId")
			}
		})
	}
	for _, d := range w.files[kedaFile].All("resource") {
		to[d.Name] = "keda" // the only identity of this file
	}
	return to
}

// granted returns the deployed actions of each process by scope.
func granted(w *world, resources []bicep.Resource, report func(string, ...any)) map[string]map[string][]string {
	to := principals(w)
	definitions := map[string][]string{}
	accountID := ""
	for _, r := range resources {
		switch r.Type {
		case account:
			accountID = r.ID
		case roleDefinition:
			want(report, r.Symbol+".type", at(r.Body, "properties", "type"), "CustomRole")
			for _, permission := range list(at(r.Body, "properties", "permissions")) {
				for _, action := range list(at(permission, "dataActions")) {
					short := strings.TrimPrefix(strings.TrimPrefix(text(action), itemActions), actions)
					definitions[r.ID] = append(definitions[r.ID], short)
				}
			}
		}
	}
	rights := map[string]map[string][]string{"api": {}, "relay": {}, "keda": {}}
	for _, r := range resources {
		if r.Type != roleAssignment || r.File == pageFile { // which has a built-in role
			continue
		}
		scope, inside := strings.CutPrefix(text(at(r.Body, "properties", "scope")), accountID)
		scope, container := strings.CutPrefix(scope, "/dbs/contacts/colls/")
		if !inside || scope != "" && !container {
			report("%s has the scope %v", r.Symbol, at(r.Body, "properties", "scope"))
		}
		definition, known := definitions[text(at(r.Body, "properties", "roleDefinitionId"))]
		if !known || rights[to[r.Symbol]] == nil {
			report("%s assigns an unknown role or to an unknown process %q", r.Symbol, to[r.Symbol])
			continue
		}
		rights[to[r.Symbol]][scope] = append(rights[to[r.Symbol]][scope], definition...)
	}
	return rights
}

func exactRights(w *world, report func(string, ...any)) {
	for name, resources := range w.running() {
		rights := granted(w, resources, report)
		for process, scopes := range allowed {
			for scope, actions := range rights[process] {
				if _, ok := scopes[scope]; !ok {
					report("%s: the %s may %v on %q", name, process, actions, scope)
				}
			}
			for scope, actions := range scopes {
				got := rights[process][scope]
				if slices.Sort(got); !slices.Equal(got, actions) {
					report("%s: the %s may %v on %q, it has to be %v", name, process, got, scope, actions)
				}
			}
		}
	}
}

// doctorRoles compares DataRoles with the assignments. A built-in role without write access
// must not replace one that has it.
func doctorRoles(w *world, report func(string, ...any)) {
	cfg := config.Cosmos{Database: "contacts", Container: "data", Leases: "leases", Parked: "parked"}
	to := principals(w)
	for file, resources := range w.running() {
		names := map[string]string{}
		for _, r := range resources {
			if r.Type == roleDefinition {
				names[r.ID] = text(at(r.Body, "properties", "roleName"))
			}
		}
		deployed := map[operator.Process]map[string]string{operator.ProcessAPI: {}, operator.ProcessRelay: {}}
		for _, r := range resources {
			if r.Type != roleAssignment {
				continue
			}
			_, container, _ := strings.Cut(text(at(r.Body, "properties", "scope")), "/colls/")
			deployed[operator.Process(to[r.Symbol])][container] = names[text(at(r.Body, "properties", "roleDefinitionId"))]
		}
		for process, roles := range deployed {
			advised := map[string]string{}
			for container, role := range doctor.DataRoles(process, cfg) {
				advised[container] = role.Name
				writes := slices.ContainsFunc(allowed[string(process)][container], func(action string) bool {
					return strings.HasPrefix(action, "items/") && action != "items/read"
				})
				if writes != strings.HasSuffix(role.BuiltInName, "Contributor") {
					report("%s: doctor has %s stand for %s of the %s", file, role.BuiltInName, role.Name, process)
				}
			}
			if !maps.Equal(advised, roles) {
				report("%s: doctor advises the %s %v, deployed are %v", file, process, advised, roles)
			}
		}
	}
}

func azureRoles(w *world, report func(string, ...any)) {
	for _, m := range w.files["bicep/main.bicep"].All("module") {
		bicep.Walk(m.Value, func(n *bicep.Node) {
			if n.Kind != bicep.Property {
				return
			}
			key, _ := n.Kids[0].Literal()
			if process, is := strings.CutSuffix(key, "PrincipalId"); is && bicep.Print(n.Kids[1]) != process+"Identity.outputs.principalId" {
				report("module %s gets %s as %s", m.Name, bicep.Print(n.Kids[1]), key)
			}
		})
	}
	to := principals(w)
	w.each(azureRole, report, func(r bicep.Resource) {
		id := text(at(r.Body, "properties", "roleDefinitionId"))
		role, ok := builtIn[id[strings.LastIndexByte(id, '/')+1:]]
		if !ok {
			report("%s assigns %s, which is not allowed", r.Symbol, id)
			return
		}
		if r.ScopeType != role.scope {
			report("%s assigns %s on %q, not on a %s", r.Symbol, role.name, r.Scope, role.scope)
		}
		if !slices.Contains(strings.Fields(role.to), to[r.Symbol]) {
			report("%s assigns %s to %q", r.Symbol, role.name, to[r.Symbol])
		}
		want(report, r.Symbol+".principalType", at(r.Body, "properties", "principalType"), "ServicePrincipal")
	})
}

// roleNames compares the expressions. Bicep itself refuses equal names only if both are deployed together.
func roleNames(w *world, report func(string, ...any)) {
	names := map[string]string{}
	for _, d := range w.files[rolesFile].All("resource") {
		if d.Existing {
			continue
		}
		for _, property := range d.Value.Kids {
			if key, _ := property.Kids[0].Literal(); key != "name" {
				continue
			}
			name := bicep.Print(property.Kids[1])
			if !strings.HasPrefix(name, "guid(") {
				report("the name of %s is %s, not a guid of scope, principal and role", d.Name, name)
			}
			if other, taken := names[name]; taken {
				report("%s and %s have the same name", d.Name, other)
			}
			names[name] = d.Name
		}
	}
}

func noKeys(w *world, report func(string, ...any)) {
	for _, file := range w.bicepFiles() {
		for _, forbidden := range []string{"listKeys", "listSecrets", "listConnectionStrings", "primaryMasterKey", "sharedKey", "AccountKey", "SharedAccessKey"} {
			if strings.Contains(w.texts[file], forbidden) {
				report("%s says %s", file, forbidden)
			}
		}
	}
	for name, resources := range w.running() {
		for _, r := range resources {
			for _, e := range environment(r) {
				if n := e.name; n == "FEEDBOX_COSMOS_KEY" || n == "FEEDBOX_SERVICEBUS_CONNECTION_STRING" || n == "FEEDBOX_AUTH_API_KEYS" {
					report("%s gives %s to %s", name, n, r.Symbol)
				}
			}
		}
	}
	w.each("Microsoft.ContainerRegistry/registries", report, func(r bicep.Resource) {
		want(report, "adminUserEnabled", at(r.Body, "properties", "adminUserEnabled"), false)
		want(report, "anonymousPullEnabled", at(r.Body, "properties", "anonymousPullEnabled"), false)
	})
	w.each("Microsoft.OperationalInsights/workspaces", report, func(r bicep.Resource) {
		want(report, "disableLocalAuth of the workspace", at(r.Body, "properties", "features", "disableLocalAuth"), true)
	})
}

// secrets checks the use of tokenKeys, the only secret.
func secrets(w *world, report func(string, ...any)) {
	for _, file := range w.bicepFiles() {
		for _, p := range w.files[file].All("param") {
			if _, secure := p.Decorator("secure"); p.Name == "tokenKeys" && (!secure || p.Value != nil) {
				report("%s: %s has to be @secure() and without a default", file, p.Name)
			}
		}
		for _, o := range w.files[file].All("output") {
			bicep.Walk(o.Value, func(n *bicep.Node) {
				if n.Kind == bicep.Ident && n.Text == "tokenKeys" {
					report("%s: output %s shows a secret", file, o.Name)
				}
			})
		}
	}
	for _, r := range w.prod {
		for _, e := range environment(r) {
			if e.name == "FEEDBOX_API_TOKEN_KEYS" && e.secret == "" {
				report("FEEDBOX_API_TOKEN_KEYS is not a reference to a secret")
			}
		}
		for _, secret := range list(at(r.Body, "properties", "configuration", "secrets")) {
			want(report, "value of a secret of "+r.Symbol, at(secret, "value"), nil)
			want(report, "address of a secret of "+r.Symbol, at(secret, "keyVaultUrl"), "https://v.vault.azure.net/secrets/token-keys")
			if owners, _ := at(r.Body, "identity", "userAssignedIdentities").(map[string]any); owners[text(at(secret, "identity"))] == nil {
				report("%s reads its secret with an identity that it does not have", r.Symbol)
			}
		}
		if r.Type == vaultType {
			want(report, "enablePurgeProtection", at(r.Body, "properties", "enablePurgeProtection"), true)
			want(report, "enableRbacAuthorization", at(r.Body, "properties", "enableRbacAuthorization"), true)
		}
	}
}
