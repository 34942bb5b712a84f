// Command idle runs a Service Bus emulator with one queue, "bench", for the
// benchmark to look at. It prints its connection string and, whenever a line comes
// in, the bytes of its heap and stacks in use. It ends with its standard input.
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
