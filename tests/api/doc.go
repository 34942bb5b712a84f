// Package api tests the contacts API as a process: what it has acknowledged must
// survive kill -9.
package api
