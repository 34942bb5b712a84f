// Package bicep parses the Bicep dialect of this repository and computes the resources
// that a deployment would create, so that tests can check them without Azure.
//
// The dialect: parameters, variables, resources (also existing and conditional ones),
// modules by local path, outputs, decorators, and expressions with strings, numbers,
// objects, arrays, calls, members, indexes and the usual operators. Not supported: object
// spread, loops other than [for name in list: item], lambdas, imports, user-defined types and functions, registry modules,
// nested resources, multi-line strings. All of these are refused with file and line.
//
// [Parse] parses one file. [Deploy] evaluates a main file with its modules. Values
// that only Azure knows at run time come from a table ([Standins]); a property that is
// missing in it is an error.
//
// The package starts no goroutines and makes no I/O.
package bicep
