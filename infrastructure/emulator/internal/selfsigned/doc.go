// Package selfsigned makes the certificates that the emulators show where none is given,
// and keeps them in a file if they are to stay the same.
package selfsigned
