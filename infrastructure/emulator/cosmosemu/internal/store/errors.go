package store

import "errors"

// Errors callers branch on. Others are storage failures.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	ErrRangeGone = errors.New("the partition key range is gone")
	ErrCorrupt   = errors.New("the data is corrupt")
	ErrInvalid   = errors.New("invalid")
)
