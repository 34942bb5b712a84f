// Package contacts reads contacts in Azure Cosmos DB for queries.
package contacts
