// Production by the Azure CLI. Both apps run the same image, given by digest.
// FEEDBOX_DEPLOYED is true if the apps exist already; then an empty FEEDBOX_IMAGE keeps
// the running image. It has no default, because a forgotten value could otherwise replace
// the service by the placeholder.
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
param deployConsole = bool(readEnvironmentVariable('FEEDBOX_CONSOLE', 'false'))
param deployKeda = bool(readEnvironmentVariable('FEEDBOX_KEDA', 'false'))
// Lists are separated by commas.
param privateNetwork = bool(readEnvironmentVariable('FEEDBOX_PRIVATE_NETWORK', 'false'))
param clientIpRanges = empty(readEnvironmentVariable('FEEDBOX_CLIENT_IPS', '')) ? [] : split(readEnvironmentVariable('FEEDBOX_CLIENT_IPS', ''), ',')
param operatorIpRanges = empty(readEnvironmentVariable('FEEDBOX_OPERATOR_IPS', '')) ? [] : split(readEnvironmentVariable('FEEDBOX_OPERATOR_IPS', ''), ',')
param egressIpRanges = empty(readEnvironmentVariable('FEEDBOX_EGRESS_IPS', '')) ? [] : split(readEnvironmentVariable('FEEDBOX_EGRESS_IPS', ''), ',')
param expectedPartitions = 8
param moreContainers = empty(readEnvironmentVariable('FEEDBOX_MORE_CONTAINERS', '')) ? [] : split(readEnvironmentVariable('FEEDBOX_MORE_CONTAINERS', ''), ',')
param messagingNamespaces = int(readEnvironmentVariable('FEEDBOX_NAMESPACES', '1'))
param alertEmail = readEnvironmentVariable('ALERT_EMAIL')
param otlpEndpoint = readEnvironmentVariable('OTEL_EXPORTER_OTLP_ENDPOINT', '')
