// Package azure is an operator's side of Azure: the store in Cosmos DB and the topics of
// Service Bus, with the doctors that examine them.
//
// What each process needs of the account, its containers and its roles, is said here
// (needs.go, roles.go): the start of a process checks the same that the doctors examine.
package azure
