// The workspace of all logs and metrics.

@description('Name of the workspace.')
param name string

@description('Region of the workspace.')
param location string

@description('Tags of the workspace.')
param tags object

@description('Retention of logs in days.')
@minValue(30)
@maxValue(730)
param retentionDays int

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-02-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    sku: { name: 'PerGB2018' }
    retentionInDays: retentionDays
    features: {
      disableLocalAuth: true
      enableLogAccessUsingOnlyResourcePermissions: true
    }
  }
}

@description('Resource id, for diagnostic settings and log alerts.')
output workspaceId string = workspace.id
