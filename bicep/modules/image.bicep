// The image that an app runs now, so that another deployment of the template keeps it.

@description('Whether the app exists.')
param exists bool

@description('Name of the app.')
param name string

@description('Requested image. Empty: the running one.')
param image string

resource app 'Microsoft.App/containerApps@2025-07-01' existing = if (exists) {
  name: name
}

var running = exists ? app!.properties.template.containers[0].image : ''

@description('The image to deploy. Empty: none yet.')
output image string = empty(image) ? running : image
