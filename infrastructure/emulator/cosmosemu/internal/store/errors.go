package store

import "errors"

// Errors callers branch on. Others are storage failures.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	ErrRangeGone = errors.New("the partition key range is gone")
	ErrInvalid   = errors.New("invalid")
	ErrNotUnique = errors.New("unique index constraint violation")
)
