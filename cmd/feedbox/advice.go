package main

import (
	"errors"

	"feedbox/infrastructure/console"
	"feedbox/infrastructure/wiring"
)

// adviseListen adds what to do about an address that cannot be had.
func adviseListen(err error) error {
	return console.Advise(err, "stop what uses the address, or give another one: FEEDBOX_API_LISTEN, FEEDBOX_OPS_LISTEN")
}

// adviseStart adds what to do about a process that could not start or go on.
func adviseStart(err error, process wiring.Process) error {
	if err == nil || errors.Is(err, wiring.ErrEnded) { // the log says why it ended
		return err
	}
	return console.Advise(err, "feedbox doctor --process "+string(process)+" examines the surroundings and says what to change")
}
