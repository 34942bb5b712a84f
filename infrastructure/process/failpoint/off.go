//go:build !failpoint

package failpoint

// Armed tells whether this binary can be struck.
const Armed = false

// Here marks a place. It does nothing.
func Here(string) {}
