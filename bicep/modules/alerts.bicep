// The alerts and the reason for each. Log alerts query the relay's JSON log lines;
// tests/infra compares the names in the queries with the code.

@description('Region of the log alerts.')
param location string

@description('Tags of the alerts.')
param tags object

@description('E-mail address for alerts. Empty: none.')
param email string

@description('Workspace with the logs.')
param workspaceId string

@description('Resource id of the Cosmos DB account.')
param accountId string

@description('Resource id of the API app.')
param apiId string

@description('Resource id of the relay app.')
param relayId string

@description('Name of the relay app in the logs.')
param relayName string

@description('Number of containers that the relay reads.')
param relayContainers int

@description('Whether the relay is deployed. Before that, a missing report is not a fault.')
param relayDeployed bool

resource people 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: 'feedbox'
  location: 'global'
  tags: tags
  properties: {
    enabled: true
    groupShortName: 'feedbox'
    emailReceivers: empty(email) ? [] : [ { name: 'mail', emailAddress: email, useCommonAlertSchema: true } ]
  }
}

var relayLog = 'ContainerAppConsoleLogs | where ContainerAppName == "${relayName}" | extend entry = parse_json(Log) | extend msg = tostring(entry.msg)'

// The relay reports it from a quarter of the events' lifetime (FEEDBOX_EVENT_TTL), so that
// three quarters are left to act.
resource eventsGrowOld 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: 'feedbox-events-grow-old'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'Feedbox: unsent events are older than a quarter of their lifetime'
    severity: 1
    enabled: true
    scopes: [ workspaceId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    skipQueryValidation: true
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: '${relayLog} | where msg == "unsent events grow old and will expire"'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
        }
      ]
    }
    actions: { actionGroups: [ people.id ] }
  }
}

// Minutes, not days, because consumers notice a delay of minutes.
resource eventsLate 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: 'feedbox-events-late'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'Feedbox: events wait for more than five minutes'
    severity: 2
    enabled: true
    scopes: [ workspaceId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT10M'
    skipQueryValidation: true
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: '${relayLog} | where msg == "relay.lag" | project TimeGenerated, age = todouble(entry.oldest_age_s)'
          timeAggregation: 'Maximum'
          metricMeasureColumn: 'age'
          operator: 'GreaterThan'
          threshold: 300
        }
      ]
    }
    actions: { actionGroups: [ people.id ] }
  }
}

// A dead relay reports no lag, so the missing report is the alert. Each container has reports of its own;
// they name it if there are several.
resource heartbeatMissing 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: 'feedbox-heartbeat-missing'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'Feedbox: no relay has reported a container for ten minutes'
    severity: 1
    enabled: relayDeployed
    scopes: [ workspaceId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT10M'
    skipQueryValidation: true
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: '${relayLog} | where msg == "relay.lag" | summarize TimeGenerated = max(TimeGenerated) by container = tostring(entry.container)'
          timeAggregation: 'Count'
          operator: 'LessThan'
          threshold: relayContainers
        }
      ]
    }
    actions: { actionGroups: [ people.id ] }
  }
}

// Each of these needs an operator. Parked keys, for example, send nothing until they are drained. The alert resolves
// five minutes after the last such line, whether or not the cause is removed.
resource eventsParked 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: 'feedbox-events-parked'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'Feedbox: events parked, missing or not read in time, range stuck, store failed over, or leases or names inconsistent'
    severity: 1
    enabled: true
    scopes: [ workspaceId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    skipQueryValidation: true
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: '${relayLog} | where msg in ("event parked", "events missing from the feed", "range is stuck", "range not read for longer than the event TTL; events may have expired unsent", "partition keys hash differently than computed here", "the store failed over; its last changes may be lost", "a lease has two records", "two leases overlap", "another relay has this instance name")'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
        }
      ]
    }
    actions: { actionGroups: [ people.id ] }
  }
}

// Reported about once a minute while it lasts. One report may be a failover.
resource rangeUnread 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: 'feedbox-range-unread'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'Feedbox: a range of the feed is not read'
    severity: 1
    enabled: true
    scopes: [ workspaceId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    skipQueryValidation: true
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: '${relayLog} | where msg == "range is not read"'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 1
        }
      ]
    }
    actions: { actionGroups: [ people.id ] }
  }
}

// An unknown lag raises no alert on the age of events. Two periods, because a single read may fail.
resource lagUnknown 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: 'feedbox-lag-unknown'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'Feedbox: the lag of a range is unknown'
    severity: 2
    enabled: true
    scopes: [ workspaceId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    skipQueryValidation: true
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: '${relayLog} | where tobool(entry.known) == false and entry.reason != "starting" | where msg == "relay.lag"'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
          failingPeriods: { numberOfEvaluationPeriods: 2, minFailingPeriodsToAlert: 2 }
        }
      ]
    }
    actions: { actionGroups: [ people.id ] }
  }
}

// An operator may have forgotten a pause: its events wait and expire.
resource rangesPaused 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: 'feedbox-ranges-paused'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'Feedbox: ranges are paused for half an hour'
    severity: 2
    enabled: true
    scopes: [ workspaceId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    skipQueryValidation: true
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: '${relayLog} | where tobool(entry.paused) | where msg == "relay.lag"'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
          failingPeriods: { numberOfEvaluationPeriods: 6, minFailingPeriodsToAlert: 6 }
        }
      ]
    }
    actions: { actionGroups: [ people.id ] }
  }
}

// Leases that often change their owner mean that replicas stall or compete.
resource leasesWander 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: 'feedbox-leases-wander'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'Feedbox: leases change hands too often'
    severity: 3
    enabled: true
    scopes: [ workspaceId ]
    evaluationFrequency: 'PT10M'
    windowSize: 'PT10M'
    skipQueryValidation: true
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: '${relayLog} | where msg == "lease lost"'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 10
        }
      ]
    }
    actions: { actionGroups: [ people.id ] }
  }
}

resource databaseThrottles 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'feedbox-database-throttles'
  location: 'global'
  tags: tags
  properties: {
    description: 'Cosmos DB answers with 429: throughput is too low, or one key is too hot.'
    severity: 2
    enabled: true
    scopes: [ accountId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: '429'
          metricNamespace: 'Microsoft.DocumentDB/databaseAccounts'
          metricName: 'TotalRequests'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 100
          dimensions: [
            { name: 'StatusCode', operator: 'Include', values: [ '429' ] }
          ]
        }
      ]
    }
    actions: [ { actionGroupId: people.id } ]
  }
}

resource relayRestarts 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'feedbox-relay-restarts'
  location: 'global'
  tags: tags
  properties: {
    description: 'The relay restarts repeatedly.'
    severity: 2
    enabled: true
    scopes: [ relayId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: 'restarts'
          metricNamespace: 'Microsoft.App/containerapps'
          metricName: 'RestartCount'
          timeAggregation: 'Maximum'
          operator: 'GreaterThan'
          threshold: 3
        }
      ]
    }
    actions: [ { actionGroupId: people.id } ]
  }
}

resource apiRestarts 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'feedbox-api-restarts'
  location: 'global'
  tags: tags
  properties: {
    description: 'The API restarts repeatedly.'
    severity: 2
    enabled: true
    scopes: [ apiId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: 'restarts'
          metricNamespace: 'Microsoft.App/containerapps'
          metricName: 'RestartCount'
          timeAggregation: 'Maximum'
          operator: 'GreaterThan'
          threshold: 3
        }
      ]
    }
    actions: [ { actionGroupId: people.id } ]
  }
}

resource apiFails 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'feedbox-api-fails'
  location: 'global'
  tags: tags
  properties: {
    description: 'The API answers with 5xx.'
    severity: 2
    enabled: true
    scopes: [ apiId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: '5xx'
          metricNamespace: 'Microsoft.App/containerapps'
          metricName: 'Requests'
          timeAggregation: 'Total'
          operator: 'GreaterThan'
          threshold: 10
          dimensions: [
            { name: 'statusCodeCategory', operator: 'Include', values: [ '5xx' ] }
          ]
        }
      ]
    }
    actions: [ { actionGroupId: people.id } ]
  }
}

// A few are callers whose token has expired. Many are guesses, or a role that was taken away.
resource apiRefuses 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'feedbox-api-refuses'
  location: 'global'
  tags: tags
  properties: {
    description: 'The API refuses many callers: wrong credentials (401) or missing roles (403).'
    severity: 2
    enabled: true
    scopes: [ apiId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: 'refused'
          metricNamespace: 'Microsoft.App/containerapps'
          metricName: 'Requests'
          timeAggregation: 'Total'
          operator: 'GreaterThan'
          threshold: 100
          dimensions: [
            { name: 'statusCode', operator: 'Include', values: [ '401', '403' ] }
          ]
        }
      ]
    }
    actions: [ { actionGroupId: people.id } ]
  }
}

// Also refusals of callers without a credential, see SECURITY.md, Limits.
resource apiLimits 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'feedbox-api-limits'
  location: 'global'
  tags: tags
  properties: {
    description: 'The API answers with 429: a caller exceeds its rate or its share.'
    severity: 3
    enabled: true
    scopes: [ apiId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: 'limited'
          metricNamespace: 'Microsoft.App/containerapps'
          metricName: 'Requests'
          timeAggregation: 'Total'
          operator: 'GreaterThan'
          threshold: 1000
          dimensions: [
            { name: 'statusCode', operator: 'Include', values: [ '429' ] }
          ]
        }
      ]
    }
    actions: [ { actionGroupId: people.id } ]
  }
}

// The processes have exactly the rights that they use, so a refusal means that a role is missing, or
// that another identity tries the database. The operations page makes a few: its doctor tests writes.
resource databaseRefuses 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'feedbox-database-refuses'
  location: 'global'
  tags: tags
  properties: {
    description: 'Cosmos DB refuses an identity: a role is missing, or an identity without a role tries.'
    severity: 2
    enabled: true
    scopes: [ accountId ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: 'refused'
          metricNamespace: 'Microsoft.DocumentDB/databaseAccounts'
          metricName: 'TotalRequests'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 20
          dimensions: [
            { name: 'StatusCode', operator: 'Include', values: [ '401', '403' ] }
          ]
        }
      ]
    }
    actions: [ { actionGroupId: people.id } ]
  }
}

@description('Group that is notified, for the alerts of the namespaces.')
output actionGroupId string = people.id
