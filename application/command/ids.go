package command

import (
	"time"

	"github.com/google/uuid"
)

// IDs makes ids that were never used before, such as uuid.New. It is safe for
// concurrent use.
type IDs func() uuid.UUID

// Clock tells the time, such as time.Now. It is safe for concurrent use.
type Clock func() time.Time
