// The database: for each container of events one of the relay's leases and one of parked events.
// The service creates none of it, because data-plane roles do not allow that. At the
// start it checks that the settings match this file.

@description('Name of the account.')
@minLength(3)
@maxLength(44)
param name string

@description('Region of the account.')
param location string

@description('Tags of the account.')
param tags object

@description('Autoscale throughput, zones and 30 days of backup instead of serverless and 7.')
param production bool

@description('Second region, production only. Empty: none.')
param failoverLocation string

@description('Log every request of the data plane.')
param dataPlaneLogs bool

@description('Containers of events, each with the names of its leases and parked events, that of the API first.')
param containers array

@description('Maximum request units per second of each container of events, production only.')
param dataThroughput int

@description('Maximum request units per second of each container of leases, production only.')
param leasesThroughput int

@description('Whether only the virtual network and operatorIpRanges reach the account.')
param privateNetwork bool

@description('IP ranges of operators and pipelines, with privateNetwork.')
param operatorIpRanges array

@description('Workspace for logs and metrics.')
param workspaceId string

var twoRegions = production && !empty(failoverLocation)
var otherRegions = twoRegions ? [ { locationName: failoverLocation, failoverPriority: 1, isZoneRedundant: true } ] : []
var ipRules = [for range in (privateNetwork ? operatorIpRanges : []): { ipAddressOrRange: range }]

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-04-15' = {
  name: name
  location: location
  tags: tags
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    locations: concat([ { locationName: location, failoverPriority: 0, isZoneRedundant: production } ], otherRegions)
    // Keys are disabled: every request has a token of an identity with a role.
    disableLocalAuth: true
    disableKeyBasedMetadataWriteAccess: true
    minimalTlsVersion: 'Tls12'
    publicNetworkAccess: privateNetwork && empty(operatorIpRanges) ? 'Disabled' : 'Enabled'
    ipRules: ipRules
    networkAclBypass: 'None'
    consistencyPolicy: { defaultConsistencyLevel: 'Session' }
    capabilities: production ? [] : [ { name: 'EnableServerless' } ]
    enableBurstCapacity: production
    enableAutomaticFailover: twoRegions
    // Never enable it: with several write regions the change feed has no common order.
    enableMultipleWriteLocations: false
    backupPolicy: {
      type: 'Continuous'
      continuousModeProperties: { tier: production ? 'Continuous30Days' : 'Continuous7Days' }
    }
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (production) {
  name: 'feedbox'
  scope: account
  properties: { level: 'CanNotDelete', notes: 'Contacts, unsent events and the positions of the relay.' }
}

resource database 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2025-04-15' = {
  parent: account
  name: 'contacts'
  properties: {
    resource: { id: 'contacts' }
  }
}

resource data 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2025-04-15' = [for c in containers: {
  parent: database
  name: c.data
  properties: {
    resource: {
      id: c.data
      partitionKey: { paths: [ '/partitionKey' ], kind: 'Hash', version: 2 }
      // TTL on without a default: only documents with their own ttl expire.
      defaultTtl: -1
      // The members that queries filter or sort by. Events are read from the change feed.
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          { path: '/type/?' }
          { path: '/data/deleted/?' }
          { path: '/data/version/?' }
        ]
        excludedPaths: [
          { path: '/*' }
          { path: '/"_etag"/?' }
        ]
      }
    }
    options: production ? { autoscaleSettings: { maxThroughput: dataThroughput } } : {}
  }
}]

resource leases 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2025-04-15' = [for c in containers: {
  parent: database
  name: c.leases
  properties: {
    resource: {
      id: c.leases
      // The .NET change feed processor and KEDA's scaler expect this key. No TTL, because
      // an expired lease would be read from the beginning again.
      partitionKey: { paths: [ '/id' ], kind: 'Hash', version: 2 }
      // Leases are read by id, which is always indexed.
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: []
        excludedPaths: [
          { path: '/*' }
        ]
      }
    }
    options: production ? { autoscaleSettings: { maxThroughput: leasesThroughput } } : {}
  }
}]

resource parked 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2025-04-15' = [for c in containers: {
  parent: database
  name: c.parked
  properties: {
    resource: {
      id: c.parked
      // No TTL, because a parked event waits for an operator.
      partitionKey: { paths: [ '/partitionKey' ], kind: 'Hash', version: 2 }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          { path: '/type/?' }
          { path: '/position/?' }
          { path: '/intent/*' }
          { path: '/closing/auto/?' }
        ]
        excludedPaths: [
          { path: '/*' }
          { path: '/"_etag"/?' }
        ]
      }
    }
    options: production ? { autoscaleSettings: { maxThroughput: 1000 } } : {}
  }
}]

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'all'
  scope: account
  properties: {
    workspaceId: workspaceId
    logAnalyticsDestinationType: 'Dedicated'
    logs: [
      { category: 'ControlPlaneRequests', enabled: true }
      { category: 'PartitionKeyRUConsumption', enabled: production }
      { category: 'DataPlaneRequests', enabled: dataPlaneLogs }
    ]
    metrics: [
      { category: 'AllMetrics', enabled: true }
    ]
  }
}

@description('Name, for roles.')
output accountName string = account.name

@description('Resource id, for alerts.')
output accountId string = account.id

@description('Address of the account.')
output endpoint string = account.properties.documentEndpoint

@description('Name of the database.')
output databaseName string = database.name
