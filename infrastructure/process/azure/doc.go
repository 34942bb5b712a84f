// Package azure reads errors and identities of the Azure SDKs for people, and redirects clients of the SDKs.
// The doctors of Cosmos DB and Service Bus and the command line use it.
package azure
