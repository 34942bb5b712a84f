package infra

import (
	"fmt"
	"slices"
	"strings"
)

const (
	vaultFile      = "bicep/modules/vault.bicep"
	vaultType      = "Microsoft.KeyVault/vaults"
	registryType   = "Microsoft.ContainerRegistry/registries"
	endpointFile   = "bicep/modules/endpoint.bicep"
	endpoint       = "Microsoft.Network/privateEndpoints"
	securityGroup  = "Microsoft.Network/networkSecurityGroups"
	lockType       = "Microsoft.Authorization/locks"
	clientIPs      = "[203.0.113.0/24]"
	operatorIPs    = "[198.51.100.7/32 198.51.100.64/26]"
	neededByCloud  = "[AzureActiveDirectory AzureMonitor MicrosoftContainerRegistry AzureFrontDoor.FirstParty *:123]"
	allowedByOwner = "[192.0.2.0/28]"
)

// services has the types that a private endpoint is for: its subresource and its DNS zone.
var services = map[string][2]string{
	account:      {"Sql", "privatelink.documents.azure.com"},
	namespace:    {"namespace", "privatelink.servicebus.windows.net"},
	registryType: {"registry", "privatelink.azurecr.io"},
	vaultType:    {"vault", "privatelink.vaultcore.azure.net"},
}

var networkChecks = []check{
	{
		"with privateNetwork, each service has a private endpoint and is closed to the Internet", privateServices,
		[]seed{
			{"bicep/main.bicep", "var private = production && privateNetwork", "var private = false"},
			{"bicep/main.bicep", "subresource: 'Sql'", "subresource: 'MongoDB'"},
			{"bicep/main.bicep", "zoneName: 'privatelink.vaultcore.azure.net'", "zoneName: 'privatelink.vault.azure.net'"},
			{"bicep/main.bicep", "serviceId: registry.outputs.id", "serviceId: vault.outputs.id"},
			{endpointFile, "privateDnsZoneId: zone.id", "privateDnsZoneId: link.id"},
			{cosmosFile, "publicNetworkAccess: privateNetwork && empty(operatorIpRanges) ? 'Disabled' : 'Enabled'", "publicNetworkAccess: 'Enabled'"},
			{cosmosFile, "    ipRules: ipRules\n", ""},
			{busFile, "    defaultAction: 'Deny'\n", "    defaultAction: 'Allow'\n"},
			{"bicep/modules/registry.bicep", "defaultAction: 'Deny'", "defaultAction: 'Allow'"},
			{vaultFile, "defaultAction: privateNetwork ? 'Deny' : 'Allow'", "defaultAction: 'Allow'"},
			{"bicep/modules/registry.bicep", "privateNetwork ? 'Premium' : production", "production"},
		},
	},
	{
		"with privateNetwork, the apps reach what the platform needs, and nothing else", egressPolicy,
		[]seed{
			{envFile, "access: 'Deny'", "access: 'Allow'"},
			{envFile, "priority: 4096", "priority: 105"},
			{envFile, "destinationAddressPrefix: 'AzureMonitor'", "destinationAddressPrefix: 'AzureCloud'"},
			{envFile, "          networkSecurityGroup: { id: egress.id }\n", ""},
			{envFile, "'${network.id}/subnets/apps', internal", "'${network.id}/subnets/endpoints', internal"},
			{envFile, "{ serviceName: 'Microsoft.App/environments' }", "{ serviceName: 'Microsoft.Web/serverFarms' }"},
			{envFile, "destinationAddressPrefixes: egressIpRanges", "destinationAddressPrefixes: [ '0.0.0.0/0' ]"},
		},
	},
	{
		"ranges of addresses restrict the API to clients and the page to operators", func(w *world, report func(string, ...any)) {
			for _, r := range w.console {
				if r.Type != app || r.Symbol != "app" {
					continue
				}
				var ranges []any
				for _, rule := range list(at(r.Body, "properties", "configuration", "ingress", "ipSecurityRestrictions")) {
					want(report, "action of a range of "+r.File, at(rule, "action"), "Allow")
					ranges = append(ranges, at(rule, "ipAddressRange"))
				}
				wanted := map[string]string{apiFile: clientIPs, pageFile: operatorIPs, relayFile: "[]"}[r.File]
				want(report, "ranges of "+r.File, fmt.Sprint(ranges), any(wanted))
			}
		},
		[]seed{
			{"bicep/main.bicep", "clientIpRanges: clientIpRanges", "clientIpRanges: operatorIpRanges"},
			{pageFile, "        ipSecurityRestrictions: ipRules\n", ""},
			{apiFile, "action: 'Allow', ipAddressRange", "action: 'Deny', ipAddressRange"},
		},
	},
	{
		"what cannot be restored is locked in production, and not in development", func(w *world, report func(string, ...any)) {
			for _, r := range w.prod {
				if _, kept := services[r.Type]; kept && r.Type != registryType && !slices.ContainsFunc(w.prod, func(l resource) bool {
					return l.Type == lockType && l.Scope == r.ID && at(l.Body, "properties", "level") == "CanNotDelete"
				}) {
					report("%s can be deleted by accident", r.ID)
				}
			}
			if slices.ContainsFunc(w.dev, func(r resource) bool { return r.Type == lockType }) {
				report("azd down cannot delete a development environment")
			}
		},
		[]seed{
			{cosmosFile, "locks@2020-05-01' = if (production)", "locks@2020-05-01' = if (!production)"},
			{vaultFile, "level: 'CanNotDelete'", "level: 'NotSpecified'"},
			{busFile, "  scope: namespace\n  properties: { level", "  scope: topic\n  properties: { level"},
		},
	},
}

func privateServices(w *world, report func(string, ...any)) {
	for name, resources := range map[string][]resource{"private": w.private, "with ranges": w.console} {
		found := 0
		for _, r := range resources {
			wanted, ok := services[r.Type]
			if !ok {
				continue
			}
			found++
			at := func(steps ...any) any { return at(r.Body, append([]any{"properties"}, steps...)...) }
			public, ranges := at("publicNetworkAccess"), "[]"
			if name == "private" {
				want(report, "public access to "+r.ID, public, "Disabled")
			} else if ranges = operatorIPs; public != "Enabled" {
				report("%s: operators cannot reach %s", name, r.ID)
			}
			rules, denied := at("ipRules"), any("Deny") // of an account: a range denies all others
			switch r.Type {
			case registryType:
				rules, denied = at("networkRuleSet", "ipRules"), at("networkRuleSet", "defaultAction")
				want(report, "sku of the registry", fmt.Sprint(r.Body["sku"]), "map[name:Premium]")
			case vaultType:
				rules, denied = at("networkAcls", "ipRules"), at("networkAcls", "defaultAction")
			case namespace:
				set := ruleSet(resources)
				rules, denied = set["ipRules"], set["defaultAction"]
			}
			want(report, "default of "+r.ID, denied, "Deny")
			var given []string
			for _, rule := range list(rules) {
				for _, value := range rule.(map[string]any) {
					if value != "Allow" {
						given = append(given, text(value))
					}
				}
			}
			want(report, "ranges of "+r.ID, fmt.Sprint(given), ranges)
			endpointOf(resources, r.ID, wanted, report)
		}
		want(report, name+": services", found, len(services))
	}
	for name, resources := range w.running() {
		if slices.ContainsFunc(resources, func(r resource) bool { return strings.HasPrefix(r.Type, "Microsoft.Network/") }) {
			report("%s has a network although none was asked for", name)
		}
	}
}

// ruleSet returns the properties of the rules of Service Bus, which are a resource of their own.
func ruleSet(resources []resource) map[string]any {
	for _, r := range resources {
		if r.Type == namespace+"/networkRuleSets" {
			properties, _ := r.Body["properties"].(map[string]any)
			return properties
		}
	}
	return nil
}

// endpointOf checks the private endpoint of a service, and that its records are in the right zone.
func endpointOf(resources []resource, service string, wanted [2]string, report func(string, ...any)) {
	for _, e := range resources {
		connection := at(e.Body, "properties", "privateLinkServiceConnections", 0, "properties")
		if e.Type != endpoint || at(connection, "privateLinkServiceId") != service {
			continue
		}
		want(report, "subresource of "+service, at(connection, "groupIds", 0), any(wanted[0]))
		want(report, "subnet of "+service, strings.HasSuffix(text(at(e.Body, "properties", "subnet", "id")), "/subnets/endpoints"), true)
		for _, records := range resources {
			if strings.HasPrefix(records.ID, e.ID+"/privateDnsZoneGroups/") {
				want(report, "zone of "+service, at(records.Body, "properties", "privateDnsZoneConfigs", 0, "properties", "privateDnsZoneId"), any("/Microsoft.Network/privateDnsZones/"+wanted[1]))
				return
			}
		}
	}
	report("%s has no private endpoint with a record", service)
}

func egressPolicy(w *world, report func(string, ...any)) {
	var group, network, environment resource
	for _, r := range w.console {
		switch r.Type {
		case securityGroup:
			group = r
		case "Microsoft.Network/virtualNetworks":
			network = r
		case "Microsoft.App/managedEnvironments":
			environment = r
		}
	}
	var allowed, ranges []string
	denies := int64(0)
	for _, rule := range list(at(group.Body, "properties", "securityRules")) {
		rule = at(rule, "properties")
		to, priority := text(at(rule, "destinationAddressPrefix")), number(at(rule, "priority"))
		switch {
		case at(rule, "access") == "Deny" && to == "Internet" && at(rule, "destinationPortRange") == "*":
			denies = priority
		case to == "":
			for _, one := range list(at(rule, "destinationAddressPrefixes")) {
				ranges = append(ranges, text(one))
			}
		default:
			if port := text(at(rule, "destinationPortRange")); port != "443" {
				to += ":" + port
			}
			allowed = append(allowed, to)
		}
		if denies != 0 && priority > denies {
			report("a rule has a lower rank than the one that denies all")
		}
	}
	want(report, "rank of the rule that denies the Internet", denies, int64(4096))
	want(report, "allowed for the platform", fmt.Sprint(allowed), neededByCloud)
	want(report, "allowed by the operator", fmt.Sprint(ranges), allowedByOwner)
	apps := at(network.Body, "properties", "subnets", 0, "properties")
	want(report, "security group of the apps", at(apps, "networkSecurityGroup", "id"), any(group.ID))
	want(report, "delegation of the apps", at(apps, "delegations", 0, "properties", "serviceName"), "Microsoft.App/environments")
	want(report, "subnet of the environment", at(environment.Body, "properties", "vnetConfiguration", "infrastructureSubnetId"), any(network.ID+"/subnets/apps"))
}
