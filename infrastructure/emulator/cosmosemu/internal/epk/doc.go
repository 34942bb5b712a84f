// Package epk computes effective partition keys: the positions of logical partitions in the key
// space, which physical partitions divide.
//
// A partition key of version 2 is hashed with MurmurHash3 (128 bit, x64) over a typed encoding
// of its values. The two top bits of the hash are cleared, so every key is in 00..3F; "FF" is
// the end of the space. A hierarchical (MultiHash) key is the concatenation of one hash per
// level, so that all keys with a common prefix of levels are adjacent. Source: internal/epk and
// partition_key.go of azcosmos v1.5.0, whose baseline vectors the tests use.
//
// The package is pure: no I/O, no goroutines, no shared state.
package epk
