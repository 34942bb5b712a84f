// Command module changes the path of the module: in go.mod, in every import, and in all
// other files that contain the full path of a package (documents, manifests, linter
// settings, the archives of tests/mutants, regular expressions).
//
//	make module MODULE=github.com/you/feedbox
//	go run ./tests/module -to github.com/you/feedbox [-dir .]
//
// It keeps similar names: the program feedbox, the variables FEEDBOX_*, names of topics,
// images and metrics. It replaces the old path only if a folder of the root follows it and
// it is not a part of a longer path. rewrite.go lists the few places that name the module
// without a package.
//
// It changes files in place; use git to review or undo the changes. It starts no goroutines.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	to := flag.String("to", "", "the new module path, for example github.com/you/feedbox")
	dir := flag.String("dir", ".", "the root of the repository")
	flag.Parse()
	if *to == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	changed, err := rewrite(*dir, *to)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "module:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files name the module %s now\n", changed, *to)
}
