// Package cosmoswire has one script for each wire behaviour of Cosmos DB that Feedbox relies on. They use
// azcosmos and the change feed of cosmosfeed, on any endpoint.
package cosmoswire
