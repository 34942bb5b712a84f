// Package fault classifies failures. Every layer speaks of failures in the same
// kinds, so a transport can answer without knowing which adapter failed.
//
// A fault never holds personal data: messages name rules and fields, not values.
package fault
