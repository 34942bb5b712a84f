// All rights of API and relay (the operations page has its own in console.bicep):
//
//              data                            leases          parked         topic   registry
//   api        create, read, replace, query    -               -              -       pull
//   relay      change feed, read               read and write  read and write send    pull
//
// There may be several containers of each kind. The API has rights on the first one only. The right to
// send is in servicebus.bicep, because there may be several namespaces.
//
// Both may read metadata, because the SDK needs it to start: names of databases and
// containers, partition keys, partitions, but no data.

@description('Name of the Cosmos DB account.')
param accountName string

@description('Name of the database.')
param databaseName string

@description('Containers of events, each with the names of its leases and parked events, that of the API first.')
param containers array

@description('Name of the container registry.')
param registryName string

@description('Object id of the identity of the API.')
param apiPrincipalId string

@description('Object id of the identity of the relay.')
param relayPrincipalId string

// Azure's built-in roles have fixed ids.
var acrPull = '7f951dda-4ed3-4680-a7ca-43fe172d538d'

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-04-15' existing = {
  name: accountName
}

resource registry 'Microsoft.ContainerRegistry/registries@2025-04-01' existing = {
  name: registryName
}

var collections = '${account.id}/dbs/${databaseName}/colls'

resource metadataRole 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2025-04-15' = {
  parent: account
  name: guid(account.id, 'feedbox-metadata')
  properties: {
    roleName: 'Feedbox metadata reader'
    type: 'CustomRole'
    assignableScopes: [ account.id ]
    permissions: [
      {
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/readMetadata'
        ]
      }
    ]
  }
}

// No upsert: the API always knows whether it creates or replaces. No delete: a
// deleted contact is replaced by a document that expires.
resource apiRole 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2025-04-15' = {
  parent: account
  name: guid(account.id, 'feedbox-api')
  properties: {
    roleName: 'Feedbox API'
    type: 'CustomRole'
    assignableScopes: [ account.id ]
    permissions: [
      {
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace'
        ]
      }
    ]
  }
}

// Single items are read if an operator sends a parked event as it is in the store now
// (retry --from-store). The change feed contains the same data.
resource feedRole 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2025-04-15' = {
  parent: account
  name: guid(account.id, 'feedbox-feed-reader')
  properties: {
    roleName: 'Feedbox change feed reader'
    type: 'CustomRole'
    assignableScopes: [ account.id ]
    permissions: [
      {
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/readChangeFeed'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read'
        ]
      }
    ]
  }
}

resource bookkeepingRole 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2025-04-15' = {
  parent: account
  name: guid(account.id, 'feedbox-bookkeeper')
  properties: {
    roleName: 'Feedbox bookkeeper'
    type: 'CustomRole'
    assignableScopes: [ account.id ]
    permissions: [
      {
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete'
        ]
      }
    ]
  }
}

// Upsert, because a repeated park or skip of a key may find its documents already stored.
resource parkingRole 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2025-04-15' = {
  parent: account
  name: guid(account.id, 'feedbox-parking')
  properties: {
    roleName: 'Feedbox parking'
    type: 'CustomRole'
    assignableScopes: [ account.id ]
    permissions: [
      {
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/upsert'
        ]
      }
    ]
  }
}

resource apiReadsMetadata 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = {
  parent: account
  name: guid(account.id, apiPrincipalId, 'feedbox-metadata')
  properties: {
    principalId: apiPrincipalId
    roleDefinitionId: metadataRole.id
    scope: account.id
  }
}

resource relayReadsMetadata 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = {
  parent: account
  name: guid(account.id, relayPrincipalId, 'feedbox-metadata')
  properties: {
    principalId: relayPrincipalId
    roleDefinitionId: metadataRole.id
    scope: account.id
  }
}

resource apiUsesData 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = {
  parent: account
  name: guid('${collections}/${containers[0].data}', apiPrincipalId, 'feedbox-api')
  properties: {
    principalId: apiPrincipalId
    roleDefinitionId: apiRole.id
    scope: '${collections}/${containers[0].data}'
  }
}

resource relayReadsFeed 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = [for c in containers: {
  parent: account
  name: guid('${collections}/${c.data}', relayPrincipalId, 'feedbox-feed-reader')
  properties: {
    principalId: relayPrincipalId
    roleDefinitionId: feedRole.id
    scope: '${collections}/${c.data}'
  }
}]

resource relayKeepsLeases 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = [for c in containers: {
  parent: account
  name: guid('${collections}/${c.leases}', relayPrincipalId, 'feedbox-bookkeeper')
  properties: {
    principalId: relayPrincipalId
    roleDefinitionId: bookkeepingRole.id
    scope: '${collections}/${c.leases}'
  }
}]

resource relayParks 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = [for c in containers: {
  parent: account
  name: guid('${collections}/${c.parked}', relayPrincipalId, 'feedbox-parking')
  properties: {
    principalId: relayPrincipalId
    roleDefinitionId: parkingRole.id
    scope: '${collections}/${c.parked}'
  }
}]

resource apiPulls 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, apiPrincipalId, acrPull)
  scope: registry
  properties: {
    principalId: apiPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', acrPull)
  }
}

resource relayPulls 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, relayPrincipalId, acrPull)
  scope: registry
  properties: {
    principalId: relayPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', acrPull)
  }
}
