// Command idle runs a Service Bus emulator with one queue, "bench", for a measurement from
// outside. It prints its connection string and, for every line of input, the bytes of heap and
// stacks in use. It exits at the end of its standard input.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"

	"feedbox/infrastructure/emulator/busemu"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	srv, err := busemu.Start(&busemu.Options{Topology: &busemu.Topology{Queues: []busemu.Queue{{Name: "bench"}}}})
	if err != nil {
		return err
	}
	defer srv.Close()
	fmt.Println(srv.ConnectionString())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(m.HeapInuse + m.StackInuse)
	}
	return in.Err()
}
