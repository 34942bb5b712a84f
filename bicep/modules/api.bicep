// The contacts API: public over HTTPS, with tokens of Microsoft Entra ID. It has no
// rights on Service Bus and cannot read the change feed, leases or parked events.

@description('Name of the app.')
param name string

@description('Region of the app.')
param location string

@description('Tags of the app.')
param tags object

@description('At least three replicas instead of one, each with half a core instead of a quarter.')
param production bool

@description('Whether the app exists already. If so, its image is kept.')
param exists bool

@description('Image to run. Empty: the running one, or a placeholder before the first deployment.')
param image string

@description('Resource id of the identity of the app.')
param identityId string

@description('Client id of the identity of the app.')
param identityClientId string

@description('Resource id of the environment.')
param environmentId string

@description('Address of the API for clients.')
param publicUrl string

@description('Host name of the container registry.')
param registryServer string

@description('Address of the Cosmos DB account.')
param cosmosEndpoint string

@description('Name of the database.')
param databaseName string

@description('Name of the container of contacts and events.')
param dataContainer string

@description('Client id of the app registration, the required audience of tokens.')
param audience string

@description('Address of the keys that protect continuation tokens, in the key vault.')
param tokenKeysUri string

@description('IP ranges of clients. Empty: any.')
param clientIpRanges array

@description('Lifetime of event documents in hours.')
param eventTtlHours int

@description('Maximum time of a graceful stop, in seconds.')
param drainSeconds int

@description('Seconds after which the platform kills a stopping process; longer than the drain.')
param graceSeconds int

@description('OTLP endpoint for traces and metrics. Empty: none.')
param otlpEndpoint string

@description('Workspace for metrics.')
param workspaceId string

// Before the first deployment of the service its image does not exist. The placeholder
// only waits to be replaced, so it gets no probes, no replicas and no ingress.
var placeholder = empty(current.outputs.image)
var opsPort = 8090
var apiPort = 8080
var ipRules = [for range in clientIpRanges: { name: replace(range, '/', '-'), action: 'Allow', ipAddressRange: range }]
var issuer = '${environment().authentication.loginEndpoint}${tenant().tenantId}/v2.0'

module current 'image.bicep' = {
  name: 'api-image'
  params: {
    exists: exists
    name: name
    image: image
  }
}

resource app 'Microsoft.App/containerApps@2025-07-01' = {
  name: name
  location: location
  tags: union(tags, { 'azd-service-name': 'api' })
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: { '${identityId}': {} }
  }
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      ingress: placeholder ? null : {
        external: true
        targetPort: apiPort
        transport: 'auto'
        allowInsecure: false
        stickySessions: { affinity: 'none' }
        ipSecurityRestrictions: ipRules
        traffic: [
          { latestRevision: true, weight: 100 }
        ]
      }
      registries: [
        { server: registryServer, identity: identityId }
      ]
      secrets: [
        { name: 'token-keys', keyVaultUrl: tokenKeysUri, identity: identityId }
      ]
    }
    template: {
      terminationGracePeriodSeconds: graceSeconds
      containers: [
        {
          name: 'api'
          image: placeholder ? 'mcr.microsoft.com/k8se/quickstart:latest' : current.outputs.image
          args: placeholder ? [] : [ 'api' ]
          resources: { cpu: json(production ? '0.5' : '0.25'), memory: production ? '1Gi' : '0.5Gi' }
          env: concat([
              { name: 'AZURE_CLIENT_ID', value: identityClientId }
              // Use the managed identity only; otherwise the SDK would try other credentials.
              { name: 'AZURE_TOKEN_CREDENTIALS', value: 'ManagedIdentityCredential' }
              { name: 'FEEDBOX_COSMOS_ENDPOINT', value: cosmosEndpoint }
              { name: 'FEEDBOX_COSMOS_DATABASE', value: databaseName }
              { name: 'FEEDBOX_COSMOS_CONTAINER', value: dataContainer }
              { name: 'FEEDBOX_AUTH', value: 'entra' }
              { name: 'FEEDBOX_AUTH_ISSUER', value: issuer }
              { name: 'FEEDBOX_AUTH_AUDIENCE', value: audience }
              { name: 'FEEDBOX_API_LISTEN', value: ':${apiPort}' }
              { name: 'FEEDBOX_OPS_LISTEN', value: ':${opsPort}' }
              { name: 'FEEDBOX_API_PUBLIC_URL', value: publicUrl }
              { name: 'FEEDBOX_API_TOKEN_KEYS', secretRef: 'token-keys' }
              { name: 'FEEDBOX_EVENT_TTL', value: '${eventTtlHours}h' }
              { name: 'FEEDBOX_DRAIN_TIMEOUT', value: '${drainSeconds}s' }
              { name: 'FEEDBOX_LOG_FORMAT', value: 'json' }
            ], empty(otlpEndpoint) ? [] : [
              { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: otlpEndpoint }
            ])
          probes: placeholder ? [] : [
            {
              type: 'Startup'
              httpGet: { path: '/livez', port: opsPort }
              periodSeconds: 5
              failureThreshold: 10
            }
            // Liveness covers the process only, because a restart does not help against an
            // outage of Cosmos DB or Service Bus.
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
      scale: {
        minReplicas: placeholder ? 0 : (production ? 3 : 1)
        maxReplicas: 10
        rules: [
          {
            name: 'http'
            http: { metadata: { concurrentRequests: '50' } }
          }
        ]
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

@description('Resource id, for alerts.')
output id string = app.id

@description('Address of the API; empty until the service is deployed.')
output url string = placeholder ? '' : publicUrl
