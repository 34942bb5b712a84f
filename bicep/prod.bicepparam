// Production, by the Azure CLI. Images are named by digest; both apps run the same
// image. FEEDBOX_DEPLOYED says whether the apps are there already: then an empty
// FEEDBOX_IMAGE keeps what runs. It has no default, so that forgetting it cannot put
// the placeholder in the place of the service.
using './main.bicep'

param environmentName = readEnvironmentVariable('AZURE_ENV_NAME')
param location = readEnvironmentVariable('AZURE_LOCATION')
param production = true
param apiAudience = readEnvironmentVariable('FEEDBOX_AUTH_AUDIENCE')
param tokenKeys = readEnvironmentVariable('FEEDBOX_API_TOKEN_KEYS')
param apiExists = bool(readEnvironmentVariable('FEEDBOX_DEPLOYED'))
param relayExists = bool(readEnvironmentVariable('FEEDBOX_DEPLOYED'))
param apiImage = readEnvironmentVariable('FEEDBOX_IMAGE', '')
param relayImage = readEnvironmentVariable('FEEDBOX_IMAGE', '')
param failoverLocation = readEnvironmentVariable('FAILOVER_LOCATION', '')
param expectedPartitions = 8
param alertEmail = readEnvironmentVariable('ALERT_EMAIL')
param otlpEndpoint = readEnvironmentVariable('OTEL_EXPORTER_OTLP_ENDPOINT', '')
