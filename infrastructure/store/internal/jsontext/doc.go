// Package jsontext writes and reads JSON member by member, without reflection: the documents
// that every change writes and every event on the feed passes through.
package jsontext
