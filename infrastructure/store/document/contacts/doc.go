// Package contacts says how contacts are stored, whatever the store: the kind of the
// aggregates, with the shapes of their documents and events. Golden files of package cosmos
// pin the shapes.
//
// They are written and read without reflection (document.go), which is worth it for what
// every change and every read of the service passes through: see
// BenchmarkEncodeUpdate of package cosmos.
package contacts
