// Where the container apps run. Logs go to the workspace by a diagnostic setting,
// which needs no shared key, unlike the destination log-analytics.

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
    // Zones need a network of one's own; see the README.
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

@description('Domain under which every app with ingress has its name.')
output defaultDomain string = environment.properties.defaultDomain
