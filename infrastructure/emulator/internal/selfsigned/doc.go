// Package selfsigned creates the certificates that the emulators use if none is given. It can
// keep a certificate in a file, so that clients need to trust its authority only once.
package selfsigned
