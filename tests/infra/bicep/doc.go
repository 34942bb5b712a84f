// Package bicep reads the Bicep dialect that this repository uses and works out what
// a deployment would create, so that tests can look at it without Azure.
//
// The dialect: parameters, variables, resources (also existing and conditional ones),
// modules by local path, outputs, decorators, and expressions with strings, numbers,
// objects, arrays, calls, members, indexes and the usual operators. Not in it: object
// spread, loops, lambdas, imports, user-defined types and functions, registry modules,
// nested resources, multi-line strings. All of these are refused with file and line.
//
// [Parse] reads one file. [Deploy] evaluates a main file with its modules. Values
// that only Azure knows at run time come from a table ([Standins]); a property that is
// not in it is an error.
//
// No goroutines, no I/O.
package bicep
