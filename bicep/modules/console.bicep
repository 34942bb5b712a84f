// The operations page, for operators with app roles. Its identity may read the database and
// nothing else, so every action on the page is refused.

@description('Name of the app.')
param name string

@description('Region of the app.')
param location string

@description('Tags of the app.')
param tags object

@description('Image to run, that of the relay. Empty: a placeholder before the first deployment.')
param image string

@description('Resource id of the environment.')
param environmentId string

@description('Name of the container registry.')
param registryName string

@description('Name of the Cosmos DB account.')
param accountName string

@description('Name of the database.')
param databaseName string

@description('Name of the container of contacts and events.')
param dataContainer string

@description('Name of the container of leases.')
param leasesContainer string

@description('Name of the container of parked events.')
param parkedContainer string

@description('Host name of the Service Bus namespace.')
param namespaceHost string

@description('Name of the topic.')
param topicName string

@description('Client id of the app registration, the required audience of tokens.')
param audience string

@description('Lifetime of event documents in hours.')
param eventTtlHours int

@description('IP ranges of operators. Empty: any.')
param operatorIpRanges array

@description('Workspace for metrics.')
param workspaceId string

var placeholder = empty(image)
var pagePort = 8070
var opsPort = 8090
var ipRules = [for range in operatorIpRanges: { name: replace(range, '/', '-'), action: 'Allow', ipAddressRange: range }]
var issuer = '${environment().authentication.loginEndpoint}${tenant().tenantId}/v2.0'

// Azure's built-in roles have fixed ids.
var acrPull = '7f951dda-4ed3-4680-a7ca-43fe172d538d'
var cosmosDataReader = '00000000-0000-0000-0000-000000000001'

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-04-15' existing = {
  name: accountName
}

resource registry 'Microsoft.ContainerRegistry/registries@2025-04-01' existing = {
  name: registryName
}

module identity 'identity.bicep' = {
  name: 'console-identity'
  params: {
    name: 'id-${name}'
    location: location
    tags: tags
  }
}

resource readsDatabase 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = {
  parent: account
  name: guid(account.id, name, cosmosDataReader)
  properties: {
    principalId: identity.outputs.principalId
    roleDefinitionId: '${account.id}/sqlRoleDefinitions/${cosmosDataReader}'
    scope: '${account.id}/dbs/${databaseName}'
  }
}

resource pulls 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, name, acrPull)
  scope: registry
  properties: {
    principalId: identity.outputs.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', acrPull)
  }
}

resource app 'Microsoft.App/containerApps@2025-07-01' = {
  name: name
  location: location
  tags: tags
  dependsOn: [ readsDatabase, pulls ]
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: { '${identity.outputs.id}': {} }
  }
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      ingress: placeholder ? null : {
        external: true
        targetPort: pagePort
        transport: 'auto'
        allowInsecure: false
        ipSecurityRestrictions: ipRules
        traffic: [
          { latestRevision: true, weight: 100 }
        ]
      }
      registries: [
        { server: registry.properties.loginServer, identity: identity.outputs.id }
      ]
    }
    template: {
      containers: [
        {
          name: 'console'
          image: placeholder ? 'mcr.microsoft.com/k8se/quickstart:latest' : image
          args: placeholder ? [] : [ 'console' ]
          resources: { cpu: json('0.25'), memory: '0.5Gi' }
          env: [
            { name: 'AZURE_CLIENT_ID', value: identity.outputs.clientId }
            // Use the managed identity only; otherwise the SDK would try other credentials.
            { name: 'AZURE_TOKEN_CREDENTIALS', value: 'ManagedIdentityCredential' }
            { name: 'FEEDBOX_COSMOS_ENDPOINT', value: account.properties.documentEndpoint }
            { name: 'FEEDBOX_COSMOS_DATABASE', value: databaseName }
            { name: 'FEEDBOX_COSMOS_CONTAINER', value: dataContainer }
            { name: 'FEEDBOX_COSMOS_LEASES', value: leasesContainer }
            { name: 'FEEDBOX_COSMOS_PARKED', value: parkedContainer }
            { name: 'FEEDBOX_SERVICEBUS_NAMESPACE', value: namespaceHost }
            { name: 'FEEDBOX_SERVICEBUS_TOPIC', value: topicName }
            { name: 'FEEDBOX_AUTH', value: 'entra' }
            { name: 'FEEDBOX_AUTH_ISSUER', value: issuer }
            { name: 'FEEDBOX_AUTH_AUDIENCE', value: audience }
            { name: 'FEEDBOX_CONSOLE_LISTEN', value: ':${pagePort}' }
            { name: 'FEEDBOX_OPS_LISTEN', value: ':${opsPort}' }
            { name: 'FEEDBOX_EVENT_TTL', value: '${eventTtlHours}h' }
            { name: 'FEEDBOX_LOG_FORMAT', value: 'json' }
          ]
          probes: placeholder ? [] : [
            {
              type: 'Startup'
              httpGet: { path: '/livez', port: opsPort }
              periodSeconds: 5
              failureThreshold: 10
            }
            {
              type: 'Liveness'
              httpGet: { path: '/livez', port: opsPort }
              periodSeconds: 10
              timeoutSeconds: 2
              failureThreshold: 3
            }
            {
              type: 'Readiness'
              httpGet: { path: '/readyz', port: opsPort }
              periodSeconds: 5
              timeoutSeconds: 2
              failureThreshold: 3
            }
          ]
        }
      ]
      // One, because sessions and forms are of one process.
      scale: {
        minReplicas: placeholder ? 0 : 1
        maxReplicas: 1
      }
    }
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'all'
  scope: app
  properties: {
    workspaceId: workspaceId
    metrics: [
      { category: 'AllMetrics', enabled: true }
    ]
  }
}
