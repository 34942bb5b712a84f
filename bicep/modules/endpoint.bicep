// A private endpoint: an address of a service in the virtual network, with the private DNS zone in
// which the apps find it under the service's public name.

@description('Name of the endpoint.')
param name string

@description('Region of the network.')
param location string

@description('Tags of the endpoint.')
param tags object

@description('Resource id of the service.')
param serviceId string

@description('Subresource of the service, such as Sql, namespace, registry or vault.')
param subresource string

@description('Name of the private DNS zone for this kind of service.')
param zoneName string

@description('Resource id of the virtual network.')
param networkId string

@description('Resource id of the subnet for endpoints.')
param subnetId string

resource endpoint 'Microsoft.Network/privateEndpoints@2024-07-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    subnet: { id: subnetId }
    privateLinkServiceConnections: [
      {
        name: name
        properties: { privateLinkServiceId: serviceId, groupIds: [ subresource ] }
      }
    ]
  }
}

resource zone 'Microsoft.Network/privateDnsZones@2024-06-01' = {
  name: zoneName
  location: 'global'
  tags: tags
}

resource link 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = {
  parent: zone
  name: 'feedbox'
  location: 'global'
  tags: tags
  properties: {
    registrationEnabled: false
    virtualNetwork: { id: networkId }
  }
}

resource records 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2024-07-01' = {
  parent: endpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      { name: subresource, properties: { privateDnsZoneId: zone.id } }
    ]
  }
}
