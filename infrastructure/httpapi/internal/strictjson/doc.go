// Package strictjson parses JSON (RFC 8259) into a tree. It reports faults that
// encoding/json accepts silently: duplicate members, invalid UTF-8, half of a surrogate
// pair, and data after the value.
//
// A request body is parsed once. Each fault is reported with a JSON pointer (RFC 6901), and
// absent, null and empty members stay distinct, as a merge patch (RFC 7396) needs.
//
// The tree holds no reference to the input. The caller bounds the depth. Memory is bounded
// by a multiple of the input length: elements of arrays are checked but not kept, and
// members, reported duplicates and the length of pointers have limits. The package starts
// no goroutines.
package strictjson
