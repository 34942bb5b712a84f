package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// adviseStore adds advice about the data folder to an emulator's start error. dir is "" for
// an emulator in memory.
func adviseStore(dir string, err error) error {
	switch {
	case err == nil || dir == "":
		return err
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("the data folder %s is in use by another process: stop that process, or give another --data-dir: %w", dir, err)
	case isAny(err, fs.ErrPermission, fs.ErrNotExist, syscall.ENOTDIR, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT):
		return fmt.Errorf("the data folder %s cannot be written: make it writable, give another --data-dir, or use --ephemeral: %w", dir, err)
	}
	return fmt.Errorf("%w; if the data is damaged, move the folder %s away to start empty, or restore a copy", err, dir)
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
