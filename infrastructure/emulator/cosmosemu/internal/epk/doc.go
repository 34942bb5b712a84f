// Package epk computes effective partition keys: the place of a logical
// partition in the key space that physical partitions divide.
//
// A partition key of version 2 is hashed with MurmurHash3 (128 bit, x64) over a
// typed encoding of its values. The two top bits of the hash are cleared, so
// every key lies in 00..3F; "FF" closes the space. A hierarchical (MultiHash)
// key is the concatenation of one hash per level, so that all keys sharing a
// prefix of levels are adjacent. Source: internal/epk and partition_key.go of
// azcosmos v1.5.0, whose baseline vectors the tests repeat.
//
// The package is pure: no I/O, no goroutines, no shared state.
package epk
