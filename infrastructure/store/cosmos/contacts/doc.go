// Package contacts reads contacts from Azure Cosmos DB for queries.
package contacts
