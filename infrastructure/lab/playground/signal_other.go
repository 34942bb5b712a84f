//go:build !unix

package playground

import (
	"errors"
	"os/exec"
)

func apart(*exec.Cmd) {}

func freeze(*exec.Cmd) error {
	return errors.New("this system cannot make a process stand still; cut its network instead")
}

func thaw(*exec.Cmd) error { return nil }
