// The identity of KEDA's scaler azure-cosmosdb, which scales the relay on Kubernetes. It makes two
// requests: it queries the leases, and it reads the change feed from their positions. It may do
// nothing else, because KEDA's operator belongs to the cluster and not to this service.

@description('Name of the identity.')
param name string

@description('Region of the identity.')
param location string

@description('Tags of the identity.')
param tags object

@description('Name of the Cosmos DB account.')
param accountName string

@description('Name of the database.')
param databaseName string

@description('Name of the container of contacts and events.')
param dataContainer string

@description('Name of the container of leases.')
param leasesContainer string

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-04-15' existing = {
  name: accountName
}

var dataScope = '${account.id}/dbs/${databaseName}/colls/${dataContainer}'
var leasesScope = '${account.id}/dbs/${databaseName}/colls/${leasesContainer}'

module identity 'identity.bicep' = {
  name: 'keda-identity'
  params: {
    name: name
    location: location
    tags: tags
  }
}

resource leaseReader 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2025-04-15' = {
  parent: account
  name: guid(account.id, 'feedbox-lease-reader')
  properties: {
    roleName: 'Feedbox lease reader'
    type: 'CustomRole'
    assignableScopes: [ account.id ]
    permissions: [
      {
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery'
        ]
      }
    ]
  }
}

// Without items/read, which the relay's role has.
resource positionReader 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2025-04-15' = {
  parent: account
  name: guid(account.id, 'feedbox-lag-reader')
  properties: {
    roleName: 'Feedbox lag reader'
    type: 'CustomRole'
    assignableScopes: [ account.id ]
    permissions: [
      {
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/readChangeFeed'
        ]
      }
    ]
  }
}

resource queriesLeases 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = {
  parent: account
  name: guid(leasesScope, name, 'feedbox-lease-reader')
  properties: {
    principalId: identity.outputs.principalId
    roleDefinitionId: leaseReader.id
    scope: leasesScope
  }
}

resource readsFeed 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = {
  parent: account
  name: guid(dataScope, name, 'feedbox-lag-reader')
  properties: {
    principalId: identity.outputs.principalId
    roleDefinitionId: positionReader.id
    scope: dataScope
  }
}
