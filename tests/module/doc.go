// Command module gives the module another path: in go.mod, in every import, and wherever
// else a file names a package by its full path (documents, manifests, linter settings,
// the archives of tests/mutants, regular expressions).
//
//	make module MODULE=github.com/you/feedbox
//	go run ./tests/module -to github.com/you/feedbox [-dir .]
//
// Names that only look alike stay: the program feedbox, the variables FEEDBOX_*, names of
// topics, images and metrics. What counts is the old path followed by a folder of the
// root, with nothing before it that would make it a part of another path; the few places
// that name the module alone are listed in rewrite.go.
//
// It changes files in place; git shows and undoes what it did. It starts no goroutines.
package main
