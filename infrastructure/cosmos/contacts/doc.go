// Package contacts says how contacts are stored in Azure Cosmos DB: the kind of the
// aggregates, with the shapes of their documents and events, and a reader for queries.
// Golden files in testdata pin the shapes.
//
// They are written and read without reflection (document.go), which is worth it for what
// every change and every read of the service passes through: see
// BenchmarkEncodeUpdate of package cosmos.
package contacts
