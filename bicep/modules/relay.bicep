// The relay: reads the change feed under leases, sends to the topic. It has no ingress,
// so nothing outside wakes it: it must never scale to zero. Two replicas at least: one
// takes over within the lease expiry when the other dies.

@description('Name of the app.')
param name string

@description('Region of the app.')
param location string

@description('Tags of the app.')
param tags object

@description('Half a core for each replica instead of a quarter.')
param production bool

@description('Whether the app exists already; then its image is kept.')
param exists bool

@description('Image to run; empty keeps the running one, or a placeholder at first.')
param image string

@description('Resource id of the identity of the app.')
param identityId string

@description('Client id of the identity of the app.')
param identityClientId string

@description('Resource id of the environment.')
param environmentId string

@description('Host name of the container registry.')
param registryServer string

@description('Address of the Cosmos DB account.')
param cosmosEndpoint string

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

@description('Lifetime of event documents in hours.')
param eventTtlHours int

@description('Longest graceful stop of the process in seconds.')
param drainSeconds int

@description('Seconds after which the platform kills a process that was asked to stop; longer than the drain.')
param graceSeconds int

@description('Most replicas; more than there are physical partitions do nothing.')
@minValue(2)
param maxReplicas int

@description('OTLP endpoint for traces and metrics; empty is none.')
param otlpEndpoint string

@description('Workspace for metrics.')
param workspaceId string

// Until the first deployment of the service there is no image of it. The placeholder
// is only there to be replaced: it gets no probes, no replicas.
var placeholder = empty(current.outputs.image)
var opsPort = 8090

module current 'image.bicep' = {
  name: 'relay-image'
  params: {
    exists: exists
    name: name
    image: image
  }
}

resource app 'Microsoft.App/containerApps@2025-07-01' = {
  name: name
  location: location
  tags: union(tags, { 'azd-service-name': 'relay' })
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: { '${identityId}': {} }
  }
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      registries: [
        { server: registryServer, identity: identityId }
      ]
    }
    template: {
      terminationGracePeriodSeconds: graceSeconds
      containers: [
        {
          name: 'relay'
          image: placeholder ? 'mcr.microsoft.com/k8se/quickstart:latest' : current.outputs.image
          args: placeholder ? [] : [ 'relay' ]
          resources: { cpu: json(production ? '0.5' : '0.25'), memory: production ? '1Gi' : '0.5Gi' }
          env: concat([
              { name: 'AZURE_CLIENT_ID', value: identityClientId }
              // No search for other credentials, and no falling back to one.
              { name: 'AZURE_TOKEN_CREDENTIALS', value: 'ManagedIdentityCredential' }
              { name: 'FEEDBOX_COSMOS_ENDPOINT', value: cosmosEndpoint }
              { name: 'FEEDBOX_COSMOS_DATABASE', value: databaseName }
              { name: 'FEEDBOX_COSMOS_CONTAINER', value: dataContainer }
              { name: 'FEEDBOX_COSMOS_LEASES', value: leasesContainer }
              { name: 'FEEDBOX_COSMOS_PARKED', value: parkedContainer }
              { name: 'FEEDBOX_SERVICEBUS_NAMESPACE', value: namespaceHost }
              { name: 'FEEDBOX_SERVICEBUS_TOPIC', value: topicName }
              { name: 'FEEDBOX_OPS_LISTEN', value: ':${opsPort}' }
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
            // The process only. It must not depend on Cosmos DB or Service Bus: an
            // outage there is no reason to restart.
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
        minReplicas: placeholder ? 0 : 2
        maxReplicas: maxReplicas
        // The lag would be the right measure; KEDA's scaler for it is not available in
        // Container Apps. See kubernetes/keda for AKS.
        rules: [
          {
            name: 'cpu'
            custom: { type: 'cpu', metadata: { type: 'Utilization', value: '70' } }
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

@description('Whether the service runs, not the placeholder.')
output deployed bool = !placeholder
