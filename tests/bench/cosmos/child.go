package cosmos

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/tests/bench/measure"
)

// servers starts processes of the command serve.
type servers struct {
	dir     string // for the program and for data
	program string
	running []*child
}

// newServers builds the command.
func newServers(ctx context.Context) (*servers, error) {
	dir, err := os.MkdirTemp("", "feedbox-bench-*")
	if err != nil {
		return nil, err
	}
	s := &servers{dir: dir, program: filepath.Join(dir, "serve")}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", s.program, "feedbox/tests/bench/cosmos/serve").CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build the server: %w: %s", err, out), s.close())
	}
	return s, nil
}

// close stops all servers and deletes their data.
func (s *servers) close() error {
	for _, c := range s.running {
		c.stop()
	}
	return os.RemoveAll(s.dir)
}

// child is a server in a separate process.
type child struct {
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Reader
	endpoint  string
	transport *http.Transport
	container *azcosmos.ContainerClient
}

// start starts a server with these flags.
func (s *servers) start(ctx context.Context, flags ...string) (*child, error) {
	cmd := exec.CommandContext(ctx, s.program, flags...)
	cmd.Stderr = os.Stderr
	c := &child{cmd: cmd}
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.running = append(s.running, c)
	line, err := c.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	endpoint, key, _ := strings.Cut(strings.TrimSpace(line), " ")
	c.endpoint = endpoint
	return c, c.connect(key)
}

func (c *child) connect(key string) error {
	credential, err := azcosmos.NewKeyCredential(key)
	if err != nil {
		return err
	}
	c.transport = &http.Transport{
		MaxIdleConnsPerHost: 4 * clients,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the server is our own child
	}
	client, err := azcosmos.NewClientWithKey(c.endpoint, credential, &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: c.transport}},
	})
	if err != nil {
		return err
	}
	c.container, err = client.NewContainer("bench", "c")
	return err
}

// cpu is the processor time that the server has used so far.
func (c *child) cpu() (time.Duration, error) {
	if _, err := fmt.Fprintln(c.in); err != nil {
		return 0, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return time.ParseDuration(strings.TrimSpace(line))
}

// turn measures one kind of operation. The sample's processor time is the server's.
func (c *child) turn(length time.Duration, op operation) measure.Turn {
	return func(ctx context.Context) (measure.Sample, error) {
		workers := make([]func(context.Context) error, clients)
		for i := range workers {
			workers[i] = op(c.container)
		}
		before, err := c.cpu()
		if err != nil {
			return measure.Sample{}, err
		}
		sample, err := measure.Loop(ctx, length, workers...)
		if err != nil {
			return measure.Sample{}, err
		}
		after, err := c.cpu()
		sample.CPU = after - before
		return sample, err
	}
}

// kill kills the server, like a crash.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have exited already
	c.stop()
}

func (c *child) stop() {
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
	_ = c.in.Close() // the server sees the end of its input
	_ = c.cmd.Wait() // its result does not matter
}
