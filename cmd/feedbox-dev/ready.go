package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// endpoints is the content of the ready file: all another process needs to use
// what this one runs. The API's two are absent from `feedbox-dev emulators`.
type endpoints struct {
	API                        string `json:"api,omitempty"`
	Ops                        string `json:"ops,omitempty"`
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
		return fmt.Errorf("--ready-file: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already once renamed
	if _, err := tmp.Write(append(data, '\n')); err != nil {
		_ = tmp.Close()
		return fmt.Errorf("--ready-file: %w", err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("--ready-file: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("--ready-file: %w", err)
	}
	return nil
}

// readEndpoints reads a ready file. What is wrong with it is wrong usage.
func readEndpoints(path string) (*endpoints, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError{fmt.Errorf("--ready-file: %w; is feedbox-dev running with --ready-file?", err)}
	}
	var e endpoints
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, usageError{fmt.Errorf("--ready-file %s: %w; give the file that feedbox-dev --ready-file writes", path, err)}
	}
	return &e, nil
}
