// Command stamp runs a long check unless the check has already passed on the same inputs:
//
//	go run ./tests/stamp run NAME -- COMMAND     run COMMAND, unless the stamp of NAME matches
//	go run ./tests/stamp inputs NAME             print everything that the stamp depends on
//
// A stamp is a line of stamps.txt: the check, a hash of its inputs, and when it passed. The
// inputs (checks.go) are the Go files of the packages under test and of all packages of this
// repository that they import, fixtures, go.mod and go.sum, the command, variables that begin
// with FEEDBOX_, and the versions of Go and of other tools. Two machines that disagree about a
// stamp compare what inputs prints.
//
// After a run that passed, the stamp is replaced. CI=true prevents that, because a stamp must
// be committed to count. STAMPS=ignore runs the check in any case; make nightly sets it.
package main
