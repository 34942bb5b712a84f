package store

import "errors"

// Errors that callers distinguish. All others are storage failures.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	ErrRangeGone = errors.New("the partition key range is gone")
	ErrInvalid   = errors.New("invalid")
	ErrNotUnique = errors.New("unique index constraint violation")
)
