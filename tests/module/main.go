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
