//go:build !unix

package sim

import "testing"

// A stall ends by the time-out of go test where a process cannot begin itself anew.

func (s *summary) resume(*testing.T)       {}
func (s *summary) watch(*testing.T) func() { return func() {} }
func (s *summary) stalls() string          { return "" }
