// Package amqp is an AMQP 1.0 codec: types, frames, performatives, delivery
// states and message sections (OASIS AMQP 1.0, parts 1, 2, 3 and 5.3).
//
// It does no I/O, starts no goroutines and keeps no state. Decoders read from
// a byte slice and encoders append to one, so a caller decides about buffers.
//
// Invariants:
//
//   - Decoding never panics and never allocates more than a small multiple of
//     the input, whatever the input is. Nesting deeper than [MaxDepth] and
//     more than [MaxZeroWidth] array elements without bytes are refused.
//   - Decode(Encode(v)) is v, and Encode(Decode(b)) is stable: one round gives
//     the canonical (shortest) form, a second round changes nothing. No type is
//     lost: decimals, chars, symbols, described values and typed arrays each
//     have a Go type of their own.
//   - Descriptors of performatives and sections are written as smallulong,
//     because go-amqp reads no other form; all legal forms are read.
//   - A message is handled as a sequence of sections kept as bytes
//     ([SplitMessage]); only the sections a broker must look at are decoded.
//
// Functions of this package are safe for concurrent use on distinct buffers.
package amqp
