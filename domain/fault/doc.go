// Package fault classifies failures. Every layer uses the same kinds, so that a transport
// can answer without knowing which adapter failed.
//
// A fault never holds personal data: messages name rules and fields, not values.
package fault
