// Package azure makes the ports of a relay on Azure: a store in Cosmos DB, whose change feed
// is read, and a topic of Service Bus.
//
//	store, err := azure.Store(client, &azure.StoreOptions{Database: "shop"})
//	broker, err := azure.Broker(sender, &azure.BrokerOptions{Topic: "orders"})
//
// Containers: the data, partitioned by its own key, with a default TTL of -1; leases by /id;
// parked events by /partitionKey, the latter two without a default TTL. Topic: duplicate
// detection on, its subscriptions with sessions.
//
// Nothing here does I/O or starts a goroutine.
package azure
