// Alerts of a Service Bus namespace. Each namespace has its own, because a metric alert has one resource of
// this kind.

@description('Suffix of the names, because the alerts of all namespaces are in one resource group.')
param suffix string

@description('Tags of the alerts.')
param tags object

@description('Resource id of the Service Bus namespace.')
param namespaceId string

@description('Resource id of the group that is notified.')
param actionGroupId string

resource deadLetters 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'feedbox-dead-letters${suffix}'
  location: 'global'
  tags: tags
  properties: {
    description: 'A consumer could not process messages.'
    severity: 2
    enabled: true
    scopes: [ namespaceId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: 'dead letters'
          metricNamespace: 'Microsoft.ServiceBus/namespaces'
          metricName: 'DeadletteredMessages'
          timeAggregation: 'Maximum'
          operator: 'GreaterThan'
          threshold: 0
          dimensions: [
            { name: 'EntityName', operator: 'Include', values: [ '*' ] }
          ]
        }
      ]
    }
    actions: [ { actionGroupId: actionGroupId } ]
  }
}

resource busThrottles 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'feedbox-service-bus-throttles${suffix}'
  location: 'global'
  tags: tags
  properties: {
    description: 'Service Bus refuses requests for lack of capacity; the relay repeats them.'
    severity: 3
    enabled: true
    scopes: [ namespaceId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: 'throttled'
          metricNamespace: 'Microsoft.ServiceBus/namespaces'
          metricName: 'ThrottledRequests'
          timeAggregation: 'Total'
          operator: 'GreaterThan'
          threshold: 100
        }
      ]
    }
    actions: [ { actionGroupId: actionGroupId } ]
  }
}
