// Package publish contains what the publishers of all brokers share: the rules that classify errors,
// the result and the report of a call, and the properties of a message.
package publish
