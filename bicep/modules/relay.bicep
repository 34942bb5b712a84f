// The relay reads the change feed under leases and sends to the topic. It must never scale
// to zero, because without ingress nothing would start it again. It has at least two
// replicas, so that one takes over within the lease expiry if the other dies.

@description('Name of the app.')
param name string

@description('Region of the app.')
param location string

@description('Tags of the app.')
param tags object

@description('Half a core per replica instead of a quarter.')
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

@description('Host name of the container registry.')
param registryServer string

@description('Address of the Cosmos DB account.')
param cosmosEndpoint string

@description('Name of the database.')
param databaseName string

@description('Containers of events, each with the names of its leases and parked events, that of the API first.')
param containers array

@description('Host name of the Service Bus namespace.')
param namespaceHost string

@description('Name of the topic.')
param topicName string

@description('Topics that share the keys, as TOPIC or TOPIC@NAMESPACE. Empty: the topic alone.')
param shards array

@description('Lifetime of event documents in hours.')
param eventTtlHours int

@description('Maximum time of a graceful stop, in seconds.')
param drainSeconds int

@description('Seconds after which the platform kills a stopping process; longer than the drain.')
param graceSeconds int

@description('Maximum of replicas. More replicas than physical partitions of all containers would be idle.')
@minValue(2)
param maxReplicas int

@description('OTLP endpoint for traces and metrics. Empty: none.')
param otlpEndpoint string

@description('Workspace for metrics.')
param workspaceId string

// Before the first deployment of the service its image does not exist. The placeholder
// only waits to be replaced, so it gets no probes, no replicas.
var placeholder = empty(current.outputs.image)
var opsPort = 8090
var more = [for c in skip(containers, 1): '${c.data}/${c.leases}/${c.parked}']

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
              // Use the managed identity only; otherwise the SDK would try other credentials.
              { name: 'AZURE_TOKEN_CREDENTIALS', value: 'ManagedIdentityCredential' }
              { name: 'FEEDBOX_COSMOS_ENDPOINT', value: cosmosEndpoint }
              { name: 'FEEDBOX_COSMOS_DATABASE', value: databaseName }
              { name: 'FEEDBOX_COSMOS_CONTAINER', value: containers[0].data }
              { name: 'FEEDBOX_COSMOS_LEASES', value: containers[0].leases }
              { name: 'FEEDBOX_COSMOS_PARKED', value: containers[0].parked }
              { name: 'FEEDBOX_SERVICEBUS_NAMESPACE', value: namespaceHost }
              { name: 'FEEDBOX_SERVICEBUS_TOPIC', value: topicName }
              { name: 'FEEDBOX_OPS_LISTEN', value: ':${opsPort}' }
              { name: 'FEEDBOX_EVENT_TTL', value: '${eventTtlHours}h' }
              { name: 'FEEDBOX_DRAIN_TIMEOUT', value: '${drainSeconds}s' }
              { name: 'FEEDBOX_LOG_FORMAT', value: 'json' }
            ], empty(more) ? [] : [
              { name: 'FEEDBOX_RELAY_CONTAINERS', value: join(more, ',') }
            ], empty(shards) ? [] : [
              { name: 'FEEDBOX_SERVICEBUS_SHARDS', value: join(shards, ',') }
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
        minReplicas: placeholder ? 0 : 2
        maxReplicas: maxReplicas
        // Scaling by lag would be better, but KEDA's scaler for it is not available in
        // Container Apps. On AKS, kubernetes/keda uses it.
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

@description('Image that runs; empty for the placeholder.')
output image string = current.outputs.image

@description('Whether the service runs instead of the placeholder.')
output deployed bool = !placeholder
