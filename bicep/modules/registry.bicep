// The registry of the service's images. A pull needs the role AcrPull; there is no
// admin user and no anonymous pull.

@description('Name of the registry: 5 to 50 letters and digits.')
@minLength(5)
@maxLength(50)
param name string

@description('Region of the registry.')
param location string

@description('Tags of the registry.')
param tags object

@description('Standard instead of Basic; Premium with privateNetwork, because the others have no private endpoints.')
param production bool

@description('Whether only the virtual network and operatorIpRanges reach the registry.')
param privateNetwork bool

@description('IP ranges of operators and pipelines, with privateNetwork.')
param operatorIpRanges array

@description('Workspace for logs and metrics.')
param workspaceId string

var ipRules = [for range in operatorIpRanges: { value: range, action: 'Allow' }]

resource registry 'Microsoft.ContainerRegistry/registries@2025-04-01' = {
  name: name
  location: location
  tags: tags
  sku: { name: privateNetwork ? 'Premium' : production ? 'Standard' : 'Basic' }
  properties: {
    adminUserEnabled: false
    anonymousPullEnabled: false
    publicNetworkAccess: privateNetwork && empty(operatorIpRanges) ? 'Disabled' : 'Enabled'
    networkRuleBypassOptions: 'None'
    networkRuleSet: privateNetwork ? { defaultAction: 'Deny', ipRules: ipRules } : null
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'all'
  scope: registry
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
output id string = registry.id

@description('Name, for role assignments.')
output name string = registry.name

@description('Host name for pushes and pulls.')
output server string = registry.properties.loginServer
