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
	"time"

	"github.com/spf13/pflag"
)

// What a running feedbox-dev keeps in its data folder besides the data.
const (
	readyName = "ready.json" // its endpoints
	pidName   = "pid"        // the number of its process, and no more
)

// endpoints is the content of a ready file: all another process needs to use
// what this one runs. The first three addresses are absent from `feedbox-dev emulators`.
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
}

// outside are the servers that --store and --broker name. The emulators are there beside them.
type outside struct {
	Store  string `json:"store,omitempty"`
	Broker string `json:"broker,omitempty"`

	store  store  // that of Store
	broker broker // that of Broker
}

// choose reads --store and --broker.
func (o *outside) choose(store, broker string, environ []string) (err error) {
	if o.store, o.Store, err = parseStore(store, environ); err != nil {
		return err
	}
	o.Broker = broker
	o.broker, err = parseBroker(broker)
	return err
}

// write puts the file in place in one step, so that a reader who waits for it
// never sees half of it. It holds the emulator's key, hence the mode.
func (e *endpoints) write(path string) error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write the endpoints: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already once renamed
	if _, err := tmp.Write(append(data, '\n')); err != nil {
		_ = tmp.Close()
		return fmt.Errorf("write the endpoints: %w", err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("write the endpoints: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write the endpoints: %w", err)
	}
	return nil
}

// publish leaves the endpoints where others look for them: the data folder, unless
// there is none, and the ready file, if one was asked for. retract takes them away.
func (e *endpoints) publish(opts *options) (retract func(), err error) {
	var files []string
	retract = func() {
		for _, file := range files {
			_ = os.Remove(file) // somebody else may have removed it
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

// place is how a command finds a running feedbox-dev.
type place struct{ dataDir, readyFile string }

func (p *place) register(flags *pflag.FlagSet) {
	flags.StringVar(&p.dataDir, "data-dir", defaultDataDir, "data folder of the running feedbox-dev")
	flags.StringVar(&p.readyFile, "ready-file", "", "the file of feedbox-dev --ready-file, instead of --data-dir")
}

// find reads where the running feedbox-dev is. What is wrong is wrong usage.
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
		return nil, usageError{fmt.Errorf("no feedbox-dev runs on the data folder %s: start it, go to the folder where you did, or name its data folder with --data-dir (or, of an --ephemeral one, its --ready-file)", p.dataDir)}
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--data-dir: %w", err)}
	}
	return e, nil
}

// findLiving is find for commands that need it to answer now: what a killed process
// left behind is no help.
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
	return nil, fmt.Errorf("the feedbox-dev that ran as process %d does not answer: start it again: %w", e.PID, err)
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
