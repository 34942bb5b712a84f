// Package operator holds the use cases of the people who run the relay: look at leases and
// lag and steer them, see parked keys and compare them with the store, send events again,
// and examine the surroundings (Diagnose).
//
// An Operator takes ready clients and connects nothing until a use case needs it. What it
// asks of a relay is noted in the store, and the relay carries it out.
//
// What each process needs of the account, its containers and its roles, is said here
// (needs.go, roles.go): the start of a process checks the same that Diagnose examines.
package operator
