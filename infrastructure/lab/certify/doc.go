// Package certify runs the wire scripts, a load with killed relays and the verifier on a Cosmos DB
// account and a Service Bus namespace, and reports which assumptions of UNVERIFIED.md hold there. It is
// feedbox-dev certify without its command line.
//
// A run creates a database and two topics with its own name, and removes them at its end, also if it
// was canceled. Remove and Leftovers are for runs that were killed.
//
// Goroutines: Run starts one for each script that splits a range, one for the other scripts of each
// service, one for the load and those of package recorder, and waits for all of them.
package certify
