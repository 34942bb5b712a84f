// The environment of the container apps. A diagnostic setting sends logs to the workspace,
// because the destination log-analytics would need a shared key. With privateNetwork the apps are in
// a virtual network, with an egress policy: they reach the private endpoints and what the platform needs.

@description('Name of the environment.')
param name string

@description('Region of the environment.')
param location string

@description('Tags of the environment.')
param tags object

@description('Whether the apps are in a virtual network. An existing environment cannot be moved into one.')
param privateNetwork bool

@description('IP ranges that the apps may reach besides the platform, on the ports of HTTPS and OTLP, with privateNetwork.')
param egressIpRanges array

@description('Workspace for logs and metrics.')
param workspaceId string

// Priorities are unique. Azure's own rules follow at 65000: the network may reach itself, and the
// Internet, which the last rule here forbids. Calls of clients do not pass the network; ipSecurityRestrictions
// of the apps filter them.
resource egress 'Microsoft.Network/networkSecurityGroups@2024-07-01' = if (privateNetwork) {
  name: 'nsg-${name}'
  location: location
  tags: tags
  properties: {
    securityRules: concat([
        // Tokens of the identities, and the keys of the issuer for the API.
        {
          name: 'entra'
          properties: { priority: 100, direction: 'Outbound', access: 'Allow', protocol: 'Tcp', sourceAddressPrefix: '*', sourcePortRange: '*', destinationAddressPrefix: 'AzureActiveDirectory', destinationPortRange: '443' }
        }
        {
          name: 'monitor'
          properties: { priority: 110, direction: 'Outbound', access: 'Allow', protocol: 'Tcp', sourceAddressPrefix: '*', sourcePortRange: '*', destinationAddressPrefix: 'AzureMonitor', destinationPortRange: '443' }
        }
        // The platform's own images and the placeholder.
        {
          name: 'platform-images'
          properties: { priority: 120, direction: 'Outbound', access: 'Allow', protocol: 'Tcp', sourceAddressPrefix: '*', sourcePortRange: '*', destinationAddressPrefix: 'MicrosoftContainerRegistry', destinationPortRange: '443' }
        }
        {
          name: 'platform-images-front'
          properties: { priority: 130, direction: 'Outbound', access: 'Allow', protocol: 'Tcp', sourceAddressPrefix: '*', sourcePortRange: '*', destinationAddressPrefix: 'AzureFrontDoor.FirstParty', destinationPortRange: '443' }
        }
        // Time, without which leases and tokens cannot be judged.
        {
          name: 'time'
          properties: { priority: 140, direction: 'Outbound', access: 'Allow', protocol: 'Udp', sourceAddressPrefix: '*', sourcePortRange: '*', destinationAddressPrefix: '*', destinationPortRange: '123' }
        }
        {
          name: 'nothing-else'
          properties: { priority: 4096, direction: 'Outbound', access: 'Deny', protocol: '*', sourceAddressPrefix: '*', sourcePortRange: '*', destinationAddressPrefix: 'Internet', destinationPortRange: '*' }
        }
      ], empty(egressIpRanges) ? [] : [
        {
          name: 'others'
          properties: { priority: 200, direction: 'Outbound', access: 'Allow', protocol: 'Tcp', sourceAddressPrefix: '*', sourcePortRange: '*', destinationAddressPrefixes: egressIpRanges, destinationPortRanges: [ '443', '4317', '4318' ] }
        }
      ])
  }
}

resource network 'Microsoft.Network/virtualNetworks@2024-07-01' = if (privateNetwork) {
  name: 'vnet-${name}'
  location: location
  tags: tags
  properties: {
    addressSpace: { addressPrefixes: [ '10.90.0.0/22' ] }
    subnets: [
      {
        name: 'apps'
        properties: {
          addressPrefix: '10.90.0.0/23'
          networkSecurityGroup: { id: egress.id }
          delegations: [
            { name: 'apps', properties: { serviceName: 'Microsoft.App/environments' } }
          ]
        }
      }
      {
        name: 'endpoints'
        properties: { addressPrefix: '10.90.2.0/26' }
      }
    ]
  }
}

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
    vnetConfiguration: privateNetwork ? { infrastructureSubnetId: '${network.id}/subnets/apps', internal: false } : null
    // Zones need a virtual network.
    zoneRedundant: privateNetwork
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

@description('Resource id of the virtual network; empty without privateNetwork.')
output networkId string = privateNetwork ? network.id : ''

@description('Resource id of the subnet for private endpoints; empty without privateNetwork.')
output endpointsSubnetId string = privateNetwork ? '${network.id}/subnets/endpoints' : ''
