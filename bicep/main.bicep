// Feedbox in one resource group: Cosmos DB, Service Bus, a key vault, two container apps, their
// registry, environment and monitoring. This file has parameters, wiring and outputs;
// each module deploys one family of resources. There are no account keys: local
// authentication is off, and every access is a role of a managed identity.
targetScope = 'subscription'

@description('Name of the environment; part of resource names and the tag azd looks for.')
@minLength(1)
@maxLength(32)
param environmentName string

@description('Region of all resources.')
param location string

@description('false: lowest cost (serverless, one API replica). true: autoscale throughput, Premium messaging, zones.')
param production bool = false

@description('Client id of the app registration for which callers of the API request tokens.')
@minLength(1)
param apiAudience string

@description('Keys that protect continuation tokens, base64 of at least 32 random bytes each, separated by commas, the newest first. All replicas need the same keys.')
@secure()
@minLength(43)
param tokenKeys string

@description('Whether the API app exists already; then its image is kept. Set by azd.')
param apiExists bool = false

@description('Whether the relay app exists already; then its image is kept. Set by azd.')
param relayExists bool = false

@description('Image of the API, by digest in production. Empty keeps the running one, or a placeholder at first.')
param apiImage string = ''

@description('Image of the relay, by digest in production. Empty keeps the running one, or a placeholder at first.')
param relayImage string = ''

@description('Lifetime of event documents in hours. An event that is not sent by then is lost, so the relay raises an alert at a quarter of it.')
@minValue(1)
@maxValue(87600)
param eventTtlHours int = 240

@description('Duplicate detection window of the topic. It must be longer than the takeover of the leases after a crash and all retries of a send together.')
param duplicateWindow string = 'PT1H'

@description('Expected number of physical partitions of all containers of events. The relay never scales beyond it, because one replica reads each partition.')
@minValue(2)
@maxValue(300)
param expectedPartitions int = 4

@description('Names of other containers that the relay reads besides that of the API, such as those of other kinds of aggregates. Each gets leases and parked events of its own, NAME-leases and NAME-parked.')
@maxLength(30)
param moreContainers array = []

@description('Maximum request units per second of each container of events. Production only; feedbox plan proposes it.')
@minValue(1000)
@maxValue(1000000)
param dataThroughput int = 4000

@description('Maximum request units per second of each container of leases. Production only; it grows with partitions and relays.')
@minValue(1000)
@maxValue(1000000)
param leasesThroughput int = 1000

@description('Messaging units of each namespace. Production only.')
@allowed([ 1, 2, 4, 8, 16 ])
param messagingUnits int = 1

@description('Namespaces, each with a topic, that share the contacts by a stable hash. With another number the relay does not start before the procedure in README.md, which keeps the order of the events.')
@minValue(1)
@maxValue(16)
param messagingNamespaces int = 1

@description('Size of each topic. Sends fail once it is full. More than 5120 needs production.')
@minValue(1024)
@maxValue(81920)
param topicMegabytes int = 5120

@description('Second region for the database, for reads and failover. Empty: none. Production only.')
param failoverLocation string = ''

@description('Log every request to the database. The cost grows with the volume of the logs.')
param dataPlaneLogs bool = false

@description('Private endpoints and an egress policy: database, broker, registry and vault are reached from the virtual network and from operatorIpRanges only. Production only, and only in a new environment.')
param privateNetwork bool = false

@description('IP ranges of clients that may reach the API, for example 203.0.113.0/24. Empty: any.')
param clientIpRanges array = []

@description('IP ranges of operators, pipelines and consumers: they may reach the operations page and, with privateNetwork, the data services. Empty: any may reach the page, and with privateNetwork none the data services.')
param operatorIpRanges array = []

@description('IP ranges that the apps may reach besides Azure, for example of a collector, with privateNetwork. Empty: none.')
param egressIpRanges array = []

@description('E-mail address for alerts. Empty: alerts fire without a notification.')
param alertEmail string = ''

@description('Whether to deploy the operations page. It is public over HTTPS, for operators with app roles, and may only read.')
param deployConsole bool = false

@description('Whether KEDA scales the relay on Kubernetes. Deploys an identity for its scaler, which may read leases and change feed.')
param deployKeda bool = false

@description('OTLP endpoint for traces and metrics, for example of a collector. Empty: none.')
param otlpEndpoint string = ''

var token = uniqueString(subscription().id, environmentName, location)
var tags = { 'azd-env-name': environmentName, project: 'feedbox' }

// Names that several modules need are defined here only.
var apiName = 'ca-api-${token}'
var relayName = 'ca-relay-${token}'
var consoleName = 'ca-console-${token}'
var others = [for name in moreContainers: { data: name, leases: '${name}-leases', parked: '${name}-parked' }]
var containers = concat([ { data: 'data', leases: 'leases', parked: 'parked' } ], others)

// Private endpoints need Premium messaging, which only production has.
var private = production && privateNetwork

// Times that depend on each other are defined here only. After the drain the process
// needs up to 8 s to release leases and flush telemetry (infrastructure/wiring,
// StopMargin). The platform must not kill it earlier.
var drainSeconds = 20
var graceSeconds = drainSeconds + 40

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = {
  name: 'rg-${environmentName}'
  location: location
  tags: tags
}

module monitoring 'modules/monitoring.bicep' = {
  name: 'monitoring'
  scope: group
  params: {
    name: 'log-${token}'
    location: location
    tags: tags
    retentionDays: production ? 90 : 30
  }
}

module apiIdentity 'modules/identity.bicep' = {
  name: 'api-identity'
  scope: group
  params: {
    name: 'id-api-${token}'
    location: location
    tags: tags
  }
}

module relayIdentity 'modules/identity.bicep' = {
  name: 'relay-identity'
  scope: group
  params: {
    name: 'id-relay-${token}'
    location: location
    tags: tags
  }
}

module registry 'modules/registry.bicep' = {
  name: 'registry'
  scope: group
  params: {
    name: 'cr${token}'
    location: location
    tags: tags
    production: production
    privateNetwork: private
    operatorIpRanges: operatorIpRanges
    workspaceId: monitoring.outputs.workspaceId
  }
}

module cosmos 'modules/cosmos.bicep' = {
  name: 'cosmos'
  scope: group
  params: {
    name: 'cosmos-${token}'
    location: location
    tags: tags
    production: production
    failoverLocation: failoverLocation
    containers: containers
    dataThroughput: dataThroughput
    leasesThroughput: leasesThroughput
    dataPlaneLogs: dataPlaneLogs
    privateNetwork: private
    operatorIpRanges: operatorIpRanges
    workspaceId: monitoring.outputs.workspaceId
  }
}

module servicebus 'modules/servicebus.bicep' = [for n in range(0, messagingNamespaces): {
  name: n == 0 ? 'servicebus' : 'servicebus-${n}'
  scope: group
  params: {
    name: n == 0 ? 'sb-${token}' : 'sb-${token}-${n}'
    location: location
    tags: tags
    production: production
    duplicateWindow: duplicateWindow
    messagingUnits: messagingUnits
    topicMegabytes: topicMegabytes
    privateNetwork: private
    operatorIpRanges: operatorIpRanges
    relayPrincipalId: relayIdentity.outputs.principalId
    workspaceId: monitoring.outputs.workspaceId
  }
}]

module apps 'modules/environment.bicep' = {
  name: 'environment'
  scope: group
  params: {
    name: 'cae-${token}'
    location: location
    tags: tags
    privateNetwork: private
    egressIpRanges: egressIpRanges
    workspaceId: monitoring.outputs.workspaceId
  }
}

module vault 'modules/vault.bicep' = {
  name: 'vault'
  scope: group
  params: {
    name: 'kv-${token}'
    location: location
    tags: tags
    production: production
    privateNetwork: private
    operatorIpRanges: operatorIpRanges
    tokenKeys: tokenKeys
    apiPrincipalId: apiIdentity.outputs.principalId
    workspaceId: monitoring.outputs.workspaceId
  }
}

module cosmosEndpoint 'modules/endpoint.bicep' = if (private) {
  name: 'cosmos-endpoint'
  scope: group
  params: {
    name: 'pe-cosmos-${token}'
    location: location
    tags: tags
    serviceId: cosmos.outputs.accountId
    subresource: 'Sql'
    zoneName: 'privatelink.documents.azure.com'
    networkId: apps.outputs.networkId
    subnetId: apps.outputs.endpointsSubnetId
  }
}

// One at a time, because they share the private DNS zone.
@batchSize(1)
module servicebusEndpoint 'modules/endpoint.bicep' = [for n in range(0, messagingNamespaces): if (private) {
  name: n == 0 ? 'servicebus-endpoint' : 'servicebus-endpoint-${n}'
  scope: group
  params: {
    name: n == 0 ? 'pe-servicebus-${token}' : 'pe-servicebus-${token}-${n}'
    location: location
    tags: tags
    serviceId: servicebus[n].outputs.namespaceId
    subresource: 'namespace'
    zoneName: 'privatelink.servicebus.windows.net'
    networkId: apps.outputs.networkId
    subnetId: apps.outputs.endpointsSubnetId
  }
}]

module registryEndpoint 'modules/endpoint.bicep' = if (private) {
  name: 'registry-endpoint'
  scope: group
  params: {
    name: 'pe-registry-${token}'
    location: location
    tags: tags
    serviceId: registry.outputs.id
    subresource: 'registry'
    zoneName: 'privatelink.azurecr.io'
    networkId: apps.outputs.networkId
    subnetId: apps.outputs.endpointsSubnetId
  }
}

module vaultEndpoint 'modules/endpoint.bicep' = if (private) {
  name: 'vault-endpoint'
  scope: group
  params: {
    name: 'pe-vault-${token}'
    location: location
    tags: tags
    serviceId: vault.outputs.id
    subresource: 'vault'
    zoneName: 'privatelink.vaultcore.azure.net'
    networkId: apps.outputs.networkId
    subnetId: apps.outputs.endpointsSubnetId
  }
}

// Roles are assigned, and endpoints resolve, before the apps start, so that the first start is not refused.
module roles 'modules/roles.bicep' = {
  name: 'roles'
  scope: group
  params: {
    accountName: cosmos.outputs.accountName
    databaseName: cosmos.outputs.databaseName
    containers: containers
    registryName: registry.outputs.name
    apiPrincipalId: apiIdentity.outputs.principalId
    relayPrincipalId: relayIdentity.outputs.principalId
  }
}

module api 'modules/api.bicep' = {
  name: 'api'
  scope: group
  dependsOn: [ roles, cosmosEndpoint, registryEndpoint, vaultEndpoint ]
  params: {
    name: apiName
    location: location
    tags: tags
    production: production
    exists: apiExists
    image: apiImage
    identityId: apiIdentity.outputs.id
    identityClientId: apiIdentity.outputs.clientId
    environmentId: apps.outputs.id
    publicUrl: 'https://${apiName}.${apps.outputs.defaultDomain}'
    registryServer: registry.outputs.server
    cosmosEndpoint: cosmos.outputs.endpoint
    databaseName: cosmos.outputs.databaseName
    dataContainer: containers[0].data
    audience: apiAudience
    tokenKeysUri: vault.outputs.tokenKeysUri
    clientIpRanges: clientIpRanges
    eventTtlHours: eventTtlHours
    drainSeconds: drainSeconds
    graceSeconds: graceSeconds
    otlpEndpoint: otlpEndpoint
    workspaceId: monitoring.outputs.workspaceId
  }
}

module relay 'modules/relay.bicep' = {
  name: 'relay'
  scope: group
  dependsOn: [ roles, cosmosEndpoint, servicebusEndpoint, registryEndpoint ]
  params: {
    name: relayName
    location: location
    tags: tags
    production: production
    exists: relayExists
    image: relayImage
    identityId: relayIdentity.outputs.id
    identityClientId: relayIdentity.outputs.clientId
    environmentId: apps.outputs.id
    registryServer: registry.outputs.server
    cosmosEndpoint: cosmos.outputs.endpoint
    databaseName: cosmos.outputs.databaseName
    containers: containers
    namespaceHost: servicebus[0].outputs.host
    topicName: servicebus[0].outputs.topicName
    // The host of the first namespace is not repeated, because a name without a host means namespaceHost.
    shards: [for n in range(0, messagingNamespaces > 1 ? messagingNamespaces : 0): n == 0 ? servicebus[n].outputs.topicName : '${servicebus[n].outputs.topicName}@${servicebus[n].outputs.host}']
    eventTtlHours: eventTtlHours
    drainSeconds: drainSeconds
    graceSeconds: graceSeconds
    maxReplicas: expectedPartitions
    otlpEndpoint: otlpEndpoint
    workspaceId: monitoring.outputs.workspaceId
  }
}

// It runs the relay's image; both are one program.
module console 'modules/console.bicep' = if (deployConsole) {
  name: 'console'
  scope: group
  params: {
    name: consoleName
    location: location
    tags: tags
    image: relay.outputs.image
    environmentId: apps.outputs.id
    registryName: registry.outputs.name
    accountName: cosmos.outputs.accountName
    databaseName: cosmos.outputs.databaseName
    dataContainer: containers[0].data
    leasesContainer: containers[0].leases
    parkedContainer: containers[0].parked
    namespaceHost: servicebus[0].outputs.host
    topicName: servicebus[0].outputs.topicName
    audience: apiAudience
    eventTtlHours: eventTtlHours
    operatorIpRanges: operatorIpRanges
    workspaceId: monitoring.outputs.workspaceId
  }
}

module keda 'modules/keda.bicep' = if (deployKeda) {
  name: 'keda'
  scope: group
  params: {
    name: 'id-keda-${token}'
    location: location
    tags: tags
    accountName: cosmos.outputs.accountName
    databaseName: cosmos.outputs.databaseName
    containers: containers
  }
}

module alerts 'modules/alerts.bicep' = {
  name: 'alerts'
  scope: group
  params: {
    location: location
    tags: tags
    email: alertEmail
    workspaceId: monitoring.outputs.workspaceId
    accountId: cosmos.outputs.accountId
    apiId: api.outputs.id
    relayId: relay.outputs.id
    relayName: relayName
    relayContainers: length(containers)
    relayDeployed: relay.outputs.deployed
  }
}

module servicebusAlerts 'modules/servicebus-alerts.bicep' = [for n in range(0, messagingNamespaces): {
  name: n == 0 ? 'servicebus-alerts' : 'servicebus-alerts-${n}'
  scope: group
  params: {
    suffix: n == 0 ? '' : '-${n}'
    tags: tags
    namespaceId: servicebus[n].outputs.namespaceId
    actionGroupId: alerts.outputs.actionGroupId
  }
}]

@description('Registry to which azd pushes images.')
output AZURE_CONTAINER_REGISTRY_ENDPOINT string = registry.outputs.server

@description('Resource group of the apps, for azd.')
output AZURE_RESOURCE_GROUP string = group.name

@description('Address of the contacts API.')
output API_URL string = api.outputs.url

@description('Address of the operations page; empty without it.')
output CONSOLE_URL string = deployConsole ? 'https://${consoleName}.${apps.outputs.defaultDomain}' : ''

@description('Subscription for consumers, with its topic and namespace. Each further namespace, sb-TOKEN-1 and so on, has one of the same name.')
output EVENTS_SUBSCRIPTION string = '${servicebus[0].outputs.host}/${servicebus[0].outputs.topicName}/${servicebus[0].outputs.subscriptionName}'
