package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// startups measures how long an emulator takes from Start to its first answer, in
// this process, and what a process with an idle one occupies.
func startups(ctx context.Context, secure bool) error {
	var times []time.Duration
	for range 21 {
		began := time.Now()
		srv, err := cosmosemu.Start(&cosmosemu.Options{TLS: secure})
		if err != nil {
			return err
		}
		if _, err := srv.Client().NewQueryDatabasesPager("SELECT * FROM d", nil).NextPage(ctx); err != nil {
			return err
		}
		times = append(times, time.Since(began))
		if err := srv.Close(); err != nil {
			return err
		}
	}
	slices.Sort(times)
	fmt.Printf("start to first answer: median %v, worst %v of %d\n", times[len(times)/2].Round(10*time.Microsecond), times[len(times)-1].Round(10*time.Microsecond), len(times))
	idle, err := startChild(ctx, "emulator", secure, "", "")
	if err != nil {
		return err
	}
	defer idle.stop()
	rss, err := idle.memory()
	if err != nil {
		return err
	}
	fmt.Printf("idle: %s\n", rss)
	return nil
}

// memory is the resident memory of the child (Linux).
func (c *child) memory() (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return "", err
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		for _, name := range []string{"VmRSS", "RssAnon", "RssFile"} {
			if value, found := strings.CutPrefix(line, name+":"); found {
				out = append(out, name+" "+strings.TrimSpace(value))
			}
		}
	}
	if len(out) > 0 {
		return strings.Join(out, ", "), nil
	}
	return "", errors.New("the kernel does not tell the resident memory")
}

// reopen fills a data directory, kills the emulator and measures how long the next
// one takes to answer.
func reopen(ctx context.Context, megabytes int, dir string) error {
	for round := range 2 {
		began := time.Now()
		server, err := startChild(ctx, "emulator", false, dir, "")
		if err != nil {
			return err
		}
		client, err := connect(server.endpoint, server.key)
		if err != nil {
			return err
		}
		c, err := client.NewContainer("bench", "c")
		if err != nil {
			return err
		}
		if round == 1 {
			if _, err := c.ReadItem(ctx, azcosmos.NewPartitionKeyString("p0"), "0", nil); err != nil {
				return err
			}
			fmt.Printf("start of the process to its first read, %d MB of documents after kill -9: %v\n", megabytes, time.Since(began).Round(time.Millisecond))
			server.stop()
			return nil
		}
		if err := fillMegabytes(ctx, c, megabytes); err != nil {
			return err
		}
		if err := server.cmd.Process.Kill(); err != nil {
			return err
		}
		_ = server.cmd.Wait() // killed
	}
	return nil
}

// blank is the filler of a document; noise stands for it where the data must not
// compress.
var blank = []byte(strings.Repeat("x", filler))

func noise() []byte {
	raw := make([]byte, filler*3/4)
	_, _ = rand.Read(raw) // never fails
	return base64.StdEncoding.AppendEncode(nil, raw)
}

func fillMegabytes(ctx context.Context, c *azcosmos.ContainerClient, megabytes int) error {
	batches := megabytes << 20 / (100 * len(body("100", "p100000")))
	work := make(chan int)
	var failure error
	var once sync.Once
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range work {
				pk := fmt.Sprint("p", n)
				b := c.NewTransactionalBatch(azcosmos.NewPartitionKeyString(pk))
				for i := range 100 {
					b.CreateItem(bytes.Replace(body(fmt.Sprint(i), pk), blank, noise(), 1), nil)
				}
				if r, err := c.ExecuteTransactionalBatch(ctx, b, nil); err != nil || !r.Success {
					once.Do(func() { failure = errors.Join(err, fmt.Errorf("batch %d failed", n)) })
				}
			}
		})
	}
	for n := range batches {
		work <- n
	}
	close(work)
	wg.Wait()
	return failure
}
