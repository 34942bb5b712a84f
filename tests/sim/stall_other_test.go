//go:build !unix

package sim

import "testing"

// On platforms without exec, a stall ends with the timeout of go test.

func (s *summary) resume(*testing.T)       {}
func (s *summary) watch(*testing.T) func() { return func() {} }
func (s *summary) stalls() string          { return "" }
