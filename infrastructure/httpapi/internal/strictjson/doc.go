// Package strictjson reads JSON (RFC 8259) as a tree and notices what
// encoding/json lets pass: members named twice, invalid UTF-8, escapes that
// are half of a surrogate pair, and anything after the value.
//
// A request body goes through it once, so that each fault can be reported
// with a JSON pointer (RFC 6901) and absent, null and empty members stay
// distinct, as a merge patch (RFC 7396) needs.
//
// The tree holds no reference to the input. Depth is bounded by the caller. What
// a text can make this package allocate is bounded by some multiple of its length:
// elements of arrays are checked and not kept, and members, reported duplicates
// and the length of pointers have limits. The package starts no goroutines.
package strictjson
