// Package jsontext writes and scans JSON member by member. It uses no reflection, because every
// change writes a document and every event of the feed is scanned.
package jsontext
