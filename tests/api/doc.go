// Package api tests the contacts API as a process: what its clients were
// promised must hold over kill -9.
package api
