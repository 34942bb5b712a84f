// Package publish contains the common parts of the publishers of all brokers: the rules that classify errors,
// the result and the report of a call, the properties of a message, and the slots of keys.
package publish
