// The image that an app runs now, so that deploying the template again keeps it.

@description('Whether the app exists.')
param exists bool

@description('Name of the app.')
param name string

@description('Image that is asked for; empty keeps the running one.')
param image string

resource app 'Microsoft.App/containerApps@2025-07-01' existing = if (exists) {
  name: name
}

var running = exists ? app!.properties.template.containers[0].image : ''

@description('The image to deploy; empty if there is none yet.')
output image string = empty(image) ? running : image
