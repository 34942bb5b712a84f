// The user-assigned identity of one app.

@description('Name of the identity.')
param name string

@description('Region of the identity.')
param location string

@description('Tags of the identity.')
param tags object

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: name
  location: location
  tags: tags
}

@description('Resource id, for assigning the identity to an app.')
output id string = identity.id

@description('Object id, for assigning roles to the identity.')
output principalId string = identity.properties.principalId

@description('Client id, with which a process selects the identity.')
output clientId string = identity.properties.clientId
