// The environment of the container apps. A diagnostic setting sends logs to the workspace,
// because the destination log-analytics would need a shared key.

@description('Name of the environment.')
param name string

@description('Region of the environment.')
param location string

@description('Tags of the environment.')
param tags object

@description('Workspace for logs and metrics.')
param workspaceId string

resource environment 'Microsoft.App/managedEnvironments@2025-07-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    appLogsConfiguration: { destination: 'azure-monitor' }
    peerTrafficConfiguration: { encryption: { enabled: true } }
    workloadProfiles: [
      { name: 'Consumption', workloadProfileType: 'Consumption' }
    ]
    // Zones need a virtual network; see the README.
    zoneRedundant: false
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'all'
  scope: environment
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

@description('Resource id, for the apps.')
output id string = environment.id

@description('Domain of all apps with ingress.')
output defaultDomain string = environment.properties.defaultDomain
