// The key vault with the keys that protect continuation tokens. The API reads them by its identity, so
// that they are not in the settings of the app. Who may read the app may not read them.

@description('Name of the vault.')
@minLength(3)
@maxLength(24)
param name string

@description('Region of the vault.')
param location string

@description('Tags of the vault.')
param tags object

@description('Protection against purging, and a lock against deletion.')
param production bool

@description('Whether only the virtual network and operatorIpRanges reach the vault.')
param privateNetwork bool

@description('IP ranges of operators and pipelines, with privateNetwork.')
param operatorIpRanges array

@description('Keys that protect continuation tokens.')
@secure()
param tokenKeys string

@description('Object id of the identity of the API.')
param apiPrincipalId string

@description('Workspace for logs and metrics.')
param workspaceId string

// Azure's built-in roles have fixed ids.
var secretsUser = '4633458b-17de-408a-b874-0445c86b69e6'

var ipRules = [for range in (privateNetwork ? operatorIpRanges : []): { value: range }]

resource vault 'Microsoft.KeyVault/vaults@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    tenantId: tenant().tenantId
    sku: { family: 'A', name: 'standard' }
    enableRbacAuthorization: true
    enableSoftDelete: true
    // It cannot be switched off again, so it would keep azd down --purge from removing a development vault.
    enablePurgeProtection: production ? true : null
    publicNetworkAccess: privateNetwork && empty(operatorIpRanges) ? 'Disabled' : 'Enabled'
    networkAcls: {
      // Deployments write the secret. They come from Azure, not from the network.
      bypass: 'AzureServices'
      defaultAction: privateNetwork ? 'Deny' : 'Allow'
      ipRules: ipRules
    }
  }
}

resource keys 'Microsoft.KeyVault/vaults/secrets@2025-05-01' = {
  parent: vault
  name: 'token-keys'
  properties: { value: tokenKeys }
}

resource apiReadsKeys 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(keys.id, apiPrincipalId, secretsUser)
  scope: keys
  properties: {
    principalId: apiPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', secretsUser)
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (production) {
  name: 'feedbox'
  scope: vault
  properties: { level: 'CanNotDelete', notes: 'Without the keys no continuation token is valid.' }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'all'
  scope: vault
  properties: {
    workspaceId: workspaceId
    logs: [
      { categoryGroup: 'allLogs', enabled: true }
    ]
    metrics: [
      { category: 'AllMetrics', enabled: true }
    ]
  }
}

@description('Resource id, for the private endpoint.')
output id string = vault.id

// Without a version, so that the app follows a rotation.
@description('Address of the keys.')
output tokenKeysUri string = '${vault.properties.vaultUri}secrets/token-keys'
