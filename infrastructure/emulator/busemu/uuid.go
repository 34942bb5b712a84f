package busemu

import (
	"crypto/rand"
	"encoding/hex"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

type uuid amqp.UUID

// newUUID returns a random (version 4) identifier.
func newUUID() uuid {
	var u uuid
	_, _ = rand.Read(u[:]) // never fails
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// hex returns the form without dashes.
func (u uuid) hex() string { return hex.EncodeToString(u[:]) }
