package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Files of a running feedbox-dev in its data folder, besides the data.
const (
	readyName = "ready.json" // its endpoints
	pidName   = "pid"        // its process id only
)

// endpoints is the content of a ready file: everything that another process needs to use
// this one. `feedbox-dev emulators` has neither API, Ops nor Page.
type endpoints struct {
	PID                        int    `json:"pid"`
	API                        string `json:"api,omitempty"`
	Ops                        string `json:"ops,omitempty"`
	Page                       string `json:"page,omitempty"`
	CosmosEndpoint             string `json:"cosmosEndpoint"`
	CosmosKey                  string `json:"cosmosKey"`
	ServiceBusConnectionString string `json:"serviceBusConnectionString"`
	ServiceBusAdmin            string `json:"serviceBusAdmin"`
	Database                   string `json:"database"`
	Container                  string `json:"container"`
	Leases                     string `json:"leases"`
	Parked                     string `json:"parked"`
	Topic                      string `json:"topic"`
	Subscription               string `json:"subscription"`
	outside

	relayOps []string // addresses of the operations endpoints of the playground's relays
}

// outside has the servers of --store and --broker. The emulators run in any case.
type outside struct {
	Store  string `json:"store,omitempty"`
	Broker string `json:"broker,omitempty"`

	store  store  // that of Store
	broker broker // that of Broker
}

// choose parses --store and --broker. @path reads the URL from a file, because other users of the
// machine can see the arguments of a process.
func (o *outside) choose(store, broker string, environ []string) (err error) {
	for name, text := range map[string]*string{"--store": &store, "--broker": &broker} {
		path, isFile := strings.CutPrefix(*text, "@")
		if !isFile {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*text = strings.TrimSpace(string(content))
	}
	if o.store, o.Store, err = parseStore(store, environ); err != nil {
		return err
	}
	o.Broker = broker
	o.broker, err = parseBroker(broker)
	return err
}

// write replaces the file atomically, so that a waiting reader never sees half of it. Only
// the user can read it, because it contains the key of the emulator.
func (e *endpoints) write(path string) error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write the endpoints: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // fails after the rename
	_, err = tmp.Write(append(data, '\n'))
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the endpoints: %w", err)
	}
	return nil
}

// publish writes the endpoints to the data folder, unless there is none, and to the ready
// file, if one was given. retract removes the files.
func (e *endpoints) publish(opts *options) (retract func(), err error) {
	var files []string
	retract = func() {
		for _, file := range files {
			_ = os.Remove(file) // it may have been removed already
		}
	}
	put := func(file string, write func(string) error) {
		if err == nil {
			if err = write(file); err == nil {
				files = append(files, file)
			}
		}
	}
	if !opts.ephemeral {
		put(filepath.Join(opts.dataDir, pidName), func(file string) error {
			return os.WriteFile(file, []byte(strconv.Itoa(e.PID)+"\n"), 0o600)
		})
		put(filepath.Join(opts.dataDir, readyName), e.write)
	}
	if opts.readyFile != "" {
		put(opts.readyFile, e.write)
	}
	if err != nil {
		retract()
	}
	return retract, err
}

// place has the flags with which a command finds a running feedbox-dev.
type place struct{ dataDir, readyFile string }

func (p *place) register(flags *pflag.FlagSet) {
	flags.StringVar(&p.dataDir, "data-dir", defaultDataDir, "data folder of the running feedbox-dev")
	flags.StringVar(&p.readyFile, "ready-file", "", "file of feedbox-dev --ready-file, instead of --data-dir")
}

// find reads the endpoints of the running feedbox-dev. Its errors are usage errors.
func (p *place) find() (*endpoints, error) {
	if p.readyFile != "" {
		e, err := readEndpoints(p.readyFile)
		if err != nil {
			return nil, usageError{fmt.Errorf("--ready-file %w; is feedbox-dev running with --ready-file?", err)}
		}
		return e, nil
	}
	e, err := readEndpoints(filepath.Join(p.dataDir, readyName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{fmt.Errorf("no feedbox-dev runs on the data folder %s: start it, change to the folder where it was started, or give its --data-dir (with --ephemeral: its --ready-file)", p.dataDir)}
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--data-dir: %w", err)}
	}
	return e, nil
}

// onRunning completes a command that needs a running feedbox-dev.
func onRunning(cmd *cobra.Command, do func(ctx context.Context, e *endpoints) error) *cobra.Command {
	p := &place{}
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		e, err := p.findLiving(cmd.Context())
		if err != nil {
			return err
		}
		return do(cmd.Context(), e)
	}
	p.register(cmd.Flags())
	return cmd
}

// findLiving is find for commands that need a running process. It also checks that the
// process answers, because a killed one leaves its files.
func (p *place) findLiving(ctx context.Context) (*endpoints, error) {
	e, err := p.find()
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(e.CosmosEndpoint)
	if err == nil {
		var conn net.Conn
		dialer := net.Dialer{Timeout: 2 * time.Second}
		if conn, err = dialer.DialContext(ctx, "tcp", u.Host); err == nil {
			return e, conn.Close()
		}
	}
	return nil, fmt.Errorf("feedbox-dev (process %d) does not answer: start it again: %w", e.PID, err)
}

func readEndpoints(path string) (*endpoints, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var e endpoints
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("%s: %w; give the file that feedbox-dev --ready-file writes", path, err)
	}
	if err := e.choose(e.Store, e.Broker, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &e, nil
}
