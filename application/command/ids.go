package command

import "github.com/google/uuid"

// IDs makes ids that were never used before, such as uuid.New. It is safe for
// concurrent use.
type IDs func() uuid.UUID
