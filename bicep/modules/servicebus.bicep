// The topic of the events, and one session subscription for a consumer.
// requiresDuplicateDetection, requiresSession and enablePartitioning cannot be changed
// later: another value needs a new entity.

@description('Name of the namespace.')
@minLength(6)
@maxLength(50)
param name string

@description('Region of the namespace.')
param location string

@description('Tags of the namespace.')
param tags object

@description('Premium instead of Standard: dedicated capacity, zones, larger messages.')
param production bool

@description('Window of duplicate detection, 20 seconds to 7 days.')
param duplicateWindow string

@description('Messaging units of a Premium namespace.')
param messagingUnits int

@description('Size of the topic in MB.')
param topicMegabytes int

@description('Whether only the virtual network and operatorIpRanges reach the namespace.')
param privateNetwork bool

@description('IP ranges of operators and consumers, with privateNetwork.')
param operatorIpRanges array

@description('Object id of the identity of the relay, which sends to the topic.')
param relayPrincipalId string

@description('Workspace for logs and metrics.')
param workspaceId string

// Azure's built-in roles have fixed ids.
var serviceBusDataSender = '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39'

var ipRules = [for range in operatorIpRanges: { ipMask: range, action: 'Allow' }]

resource namespace 'Microsoft.ServiceBus/namespaces@2024-01-01' = {
  name: name
  location: location
  tags: tags
  sku: production ? { name: 'Premium', tier: 'Premium', capacity: messagingUnits } : { name: 'Standard', tier: 'Standard' }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: privateNetwork && empty(operatorIpRanges) ? 'Disabled' : 'Enabled'
  }
}

resource rules 'Microsoft.ServiceBus/namespaces/networkRuleSets@2024-01-01' = if (privateNetwork) {
  parent: namespace
  name: 'default'
  properties: {
    defaultAction: 'Deny'
    publicNetworkAccess: empty(operatorIpRanges) ? 'Disabled' : 'Enabled'
    trustedServiceAccessEnabled: false
    ipRules: ipRules
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (production) {
  name: 'feedbox'
  scope: namespace
  properties: { level: 'CanNotDelete', notes: 'Messages that consumers have not received.' }
}

resource topic 'Microsoft.ServiceBus/namespaces/topics@2024-01-01' = {
  parent: namespace
  name: 'contacts'
  properties: {
    // The relay repeats a send whose result is unknown; the topic drops the duplicate.
    requiresDuplicateDetection: true
    duplicateDetectionHistoryTimeWindow: duplicateWindow
    // No partitions, so that one duplicate window covers all messages in one order.
    enablePartitioning: false
    enableExpress: false
    supportOrdering: true
    defaultMessageTimeToLive: 'P14D'
    maxSizeInMegabytes: topicMegabytes
    // No autoDeleteOnIdle, because a week without traffic must not delete the topic.
  }
}

resource relaySends 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(topic.id, relayPrincipalId, serviceBusDataSender)
  scope: topic
  properties: {
    principalId: relayPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', serviceBusDataSender)
  }
}

resource consumer 'Microsoft.ServiceBus/namespaces/topics/subscriptions@2024-01-01' = {
  parent: topic
  name: 'contacts'
  properties: {
    // A session holds the events of one contact, in order, for one consumer at a time.
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P14D'
    deadLetteringOnMessageExpiration: true
    deadLetteringOnFilterEvaluationExceptions: true
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'all'
  scope: namespace
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

@description('Resource id, for alerts.')
output namespaceId string = namespace.id

@description('Host name, without scheme and port.')
output host string = split(replace(namespace.properties.serviceBusEndpoint, 'https://', ''), ':')[0]

@description('Name of the topic.')
output topicName string = topic.name

@description('Name of the session subscription.')
output subscriptionName string = consumer.name
