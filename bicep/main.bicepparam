// Development by azd. The values come from the azd environment.
using './main.bicep'

param environmentName = readEnvironmentVariable('AZURE_ENV_NAME')
param location = readEnvironmentVariable('AZURE_LOCATION')
param apiAudience = readEnvironmentVariable('FEEDBOX_AUTH_AUDIENCE')
param tokenKeys = readEnvironmentVariable('FEEDBOX_API_TOKEN_KEYS')
param apiExists = bool(readEnvironmentVariable('SERVICE_API_RESOURCE_EXISTS', 'false'))
param relayExists = bool(readEnvironmentVariable('SERVICE_RELAY_RESOURCE_EXISTS', 'false'))
// A list separated by commas.
param moreContainers = empty(readEnvironmentVariable('FEEDBOX_MORE_CONTAINERS', '')) ? [] : split(readEnvironmentVariable('FEEDBOX_MORE_CONTAINERS', ''), ',')
param alertEmail = readEnvironmentVariable('ALERT_EMAIL', '')
