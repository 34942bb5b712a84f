// Package contacts defines the stored form of contacts, which is the same in every store: the
// kind of the aggregates, with their documents and events. Golden files of package cosmos pin
// the form.
//
// The codecs use no reflection (document.go), because every change and every read of the
// service runs through them: see BenchmarkEncodeUpdate of package cosmos.
package contacts
