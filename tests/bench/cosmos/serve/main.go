// Command serve runs a server whose processor time and memory are measured from outside: the
// Cosmos DB emulator, or the floor, a net/http server that answers and stores nothing.
//
// It prints its endpoint and its key. For every line of input it prints its processor time.
// It exits at the end of its input.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/bench/measure"
)

func main() {
	floor := flag.Bool("floor", false, "be the floor")
	headers := flag.Bool("headers", false, "give the replies of the floor the headers of the emulator's")
	secure := flag.Bool("tls", false, "serve over TLS")
	dir := flag.String("data-dir", "", "keep the data here, with fsync")
	partitions := flag.Int("partitions", 1, "physical partitions of the container")
	flag.Parse()
	if err := serve(*floor, *headers, *secure, *dir, *partitions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(floor, headers, secure bool, dir string, partitions int) error {
	// The emulator's key serves for both.
	emulator, err := cosmosemu.Start(&cosmosemu.Options{TLS: secure, DataDir: dir})
	if err != nil {
		return err
	}
	defer func() { _ = emulator.Close() }() // the process exits
	props := cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}, DefaultTTL: -1, Partitions: partitions}
	if err := emulator.CreateContainer("bench", props); err != nil {
		return err
	}
	endpoint := emulator.Endpoint()
	if floor {
		if endpoint, err = serveFloor(secure, headers); err != nil {
			return err
		}
	}
	fmt.Println(endpoint, emulator.Key())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println(measure.CPU())
	}
	return in.Err()
}
