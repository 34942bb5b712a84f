//go:build !failpoint

package failpoint

// Armed reports whether this binary has failpoints.
const Armed = false

// Here marks a place. It does nothing.
func Here(string) {}
