// Package buswire has one script for each wire behaviour of Service Bus that Feedbox relies on. They use
// azservicebus, on any endpoint.
package buswire
