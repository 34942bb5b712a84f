// The identity of KEDA's scaler azure-cosmosdb, which scales the relay on Kubernetes. For each container
// it queries the leases, lists the physical partitions, and reads the change feed from the positions of
// the leases. It may do nothing else, because KEDA's operator belongs to the cluster and not to this service.

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

@description('Containers of events, each with the names of its leases and parked events, that of the API first.')
param containers array

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-04-15' existing = {
  name: accountName
}

var collections = '${account.id}/dbs/${databaseName}/colls'

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

// Without items/read, which the relay's role has. The metadata are the physical partitions: the scaler reads
// each by its id and finds it by the range of the lease.
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
          'Microsoft.DocumentDB/databaseAccounts/readMetadata'
        ]
      }
    ]
  }
}

resource queriesLeases 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = [for c in containers: {
  parent: account
  name: guid('${collections}/${c.leases}', name, 'feedbox-lease-reader')
  properties: {
    principalId: identity.outputs.principalId
    roleDefinitionId: leaseReader.id
    scope: '${collections}/${c.leases}'
  }
}]

resource readsFeed 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = [for c in containers: {
  parent: account
  name: guid('${collections}/${c.data}', name, 'feedbox-lag-reader')
  properties: {
    principalId: identity.outputs.principalId
    roleDefinitionId: positionReader.id
    scope: '${collections}/${c.data}'
  }
}]
