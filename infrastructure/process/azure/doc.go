// Package azure reads errors and identities of the Azure SDKs for people: the doctors of Cosmos
// DB and Service Bus and the command line show both.
package azure
